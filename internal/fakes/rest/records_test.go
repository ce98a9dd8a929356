package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestRecords is [TestDestinations] for systems of records.
func TestRecords(t *testing.T) {
	all := map[string]scene{}
	trapScenes(t, all)
	tableScenes(t, all)
	letterScenes(t, all)
	moreScenes(t, all)
	for name, s := range all {
		t.Run(name, func(t *testing.T) { s.play(t) })
	}
}

// scened adds scenes of one fake.
func scened(t *testing.T, all map[string]scene, login string) func(name string, f *rest.Fake, lines string, met ...fault.Fault) {
	return func(name string, f *rest.Fake, lines string, met ...fault.Fault) {
		all[name] = scene{fake: f, login: login, lines: lines, setup: faults(t, f, met...)}
	}
}

var twice = fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 1}

// trapScenes are about systems that were hard to declare.
func trapScenes(t *testing.T, all map[string]scene) {
	add := scened(t, all, "Session cm9ib3Q6MTp0b2tlbg==")
	rpc := func(method, params string) string {
		return `POST /db/ {"id":7,"method":"model.sale.sale.` + method + `","params":[` + params + `,{}]}`
	}
	const all1, key = `[["active","=",true]],0,null,null`, `[["reference","=","k1"]],0,1000,null`
	add("tryton: every error is 200", rest.NewTryton(rest.TrytonOptions{Unique: "party"}).Fake, `
		GET /db/ => 405 Allow:~POST
		GET /db/ Authorization:x => 405
		`+rpc("create", `[{"reference":"k1","party":5,"total":{"__class__":"Decimal","decimal":"10.00"}}]`)+` Authorization:x => 200 "error":["NotLogged"] "id":null !result
		`+rpc("create", `[{"reference":"k1","party":5,"total":{"__class__":"Decimal","decimal":"10.00"}}]`)+` => 200 "result":[1] "id":7 !error
		`+rpc("create", `[{"reference":"k2","party":5}]`)+` => 200 "error":["UserError",["The~party~must~be~unique."
		`+rpc("create", `[{"colour":"red"}]`)+` => 200 KeyError:~'colour' !result
		`+rpc("search_read", key+`,["reference","total"]`)+` => 200 "result":[{"id":1,"reference":"k1","total":{"__class__":"Decimal","decimal":"10.00"}}]
		`+rpc("search", key)+` => 200 "result":[1]
		`+rpc("search", `[["reference","=","k9"]],0,10,null`)+` => 200 "result":[]
		`+rpc("search", `[["colour","=","k9"]],0,10,null`)+` => 200 "error":["'colour'"
		`+rpc("read", `[1],["reference"]`)+` => 200 {"id":1,"reference":"k1"}
		`+rpc("read", `[1,9],["reference"]`)+` => 200 "error":["UserError",["You~are~trying~to~read !result
		`+rpc("write", `[1],{"description":"d","active":false}`)+` => 200 "result":null
		`+rpc("write", `[9],{"description":"d"}`)+` => 200 "error"
		`+rpc("search_read", all1+`,["reference"]`)+` => 200 "result":[]
		`+rpc("search", key)+` => 200 "result":[]
		`+rpc("read", `[1],["description"]`)+` => 200 "description":"d"
		`+rpc("delete", `[1]`)+` => 200 "result":null
		`+rpc("explode", `[1]`)+` => 200 "error"
		POST /other/ {"id":1} => 200 "error"
		POST /db/ {"id": => 200 "error"`)
	add("tryton: faults", rest.NewTryton(rest.TrytonOptions{}).Fake, `
		`+rpc("create", `[{"reference":"k1","description":"d"}]`)+` => lost
		`+rpc("create", `[{"reference":"k2"}]`)+` => 200 "error":["UserError"
		`+rpc("create", `[{"reference":"k3"}]`)+` => 200 "error":["RateLimitException"]
		after 1s
		`+rpc("search_read", key+`,["reference","description"]`)+` => 200 {"description":"D","id":1,"reference":"k1"} "id":2
		`+rpc("search", key)+` => 503`,
		fault.Fault{Kind: fault.LostAnswer, Nth: 1}, fault.Fault{Kind: fault.NormalisedField, Nth: 1}, twice,
		fault.Fault{Kind: fault.Refused, Nth: 2}, fault.Fault{Kind: fault.Throttled, Nth: 3}, fault.Fault{Kind: fault.UnreadableRead, How: "503", Nth: 2})

	add = scened(t, all, "token rt-token")
	add("rt: custom fields in an order of chance", rest.NewRT(rest.RTOptions{Seed: 2, Fields: []string{"Readback", "Amount", "Amount"}}).Fake, `
		POST /REST/2.0/ticket {"Queue":"General","Subject":"s","CustomFields":{"Readback":"k1","2":"5","Colour":"red"}} => 201 Location:~https://rt.example.com/REST/2.0/ticket/1 "type":"ticket" "id":"1" !Subject
		GET /REST/2.0/ticket/1 => 200 "CustomFields":[{"_url":"https://rt.example.com/REST/2.0/customfield/3" "name":"Readback","type":"customfield","values":["k1"] "id":"2","name":"Amount","type":"customfield","values":["5"] !Colour
		GET /REST/2.0/ticket/1 => 200 "CustomFields":[{"_url":"https://rt.example.com/REST/2.0/customfield/3"
		GET /REST/2.0/ticket/1 => 200 "CustomFields":[{"_url":"https://rt.example.com/REST/2.0/customfield/2"
		GET /REST/2.0/tickets?query=CF.{Readback}='k1'&fields=Subject,CustomFields => 200 "total":1 "values":["k1"] "Subject":"s"
		GET /REST/2.0/tickets?query=CF.{Readback}='k1' => 200 "items":[{"_url" !CustomFields
		GET /REST/2.0/tickets?query=CF.{Readback}='k2' => 200 "items":[] "total":0
		GET /REST/2.0/tickets?query=nonsense => 400 could~not~be~parsed
		PUT /REST/2.0/ticket/1 {"Subject":"new","CustomFields":{"Readback":["k3"]}} => 200 ["Ticket~1
		DELETE /REST/2.0/ticket/1 => 204
		GET /REST/2.0/tickets?query=CF.{1}='k3' => 200 "items":[]
		GET /REST/2.0/ticket/1 => 200 "Status":"deleted" "Subject":"new"
		GET /REST/2.0/ticket/9 => 404 {"message":"Not~Found"}
		POST /REST/2.0/ticket {"Subject":"s"} => 400 Queue~not~set
		POST /REST/2.0/ticket {"Queue":"Nope"} => 400 Unable~to~find~queue
		GET /REST/2.0/ticket/1 Authorization:x => 401 Unauthorized`)
	add("rt: faults", rest.NewRT(rest.RTOptions{}).Fake, `
		POST /REST/2.0/ticket {"Queue":"General","Subject":"s","CustomFields":{"Readback":"k1"}} => 201
		after 1s
		GET /REST/2.0/tickets?query=CF.{Readback}='k1'&fields=Subject&per_page=1 => 200 "total":2 "pages":2 "Subject":null
		POST /REST/2.0/ticket {"Queue":"General"} => 429 Retry-After:~1`,
		fault.Fault{Kind: fault.DroppedField, Nth: 1}, twice, fault.Fault{Kind: fault.Throttled, Nth: 2})

	add = scened(t, all, "")
	redmine := func(lines string) string {
		return strings.ReplaceAll(lines, " =>", " X-Redmine-API-Key:redmine-key =>")
	}
	add("redmine: 404 without a body", rest.NewRedmine(rest.RedmineOptions{}).Fake, redmine(`
		GET /issues/1.json => 404 !{ !Content-Type
		PUT /issues/1.json {"issue":{"subject":"s"}} => 404 !{
		GET /nothing => 404 !{
		POST /issues.json {"issue":{"project_id":"ops","subject":"s","description":"d","custom_fields":[{"id":1,"value":"k1"},{"id":9,"value":"x"}]}} => 201 {"issue":{ "id":1 "custom_fields":[{"id":1,"name":"Readback","value":"k1"},{"id":2,"name":"Amount","value":""}]
		POST /issues.json {"issue":{"project_id":"ops","subject":"other"}} => 201 "id":2
		POST /issues.json {"issue":{"project_id":"nope","subject":"s"}} => 404 !{
		POST /issues.json {"issue":{"project_id":"ops"}} => 422 {"errors":["Subject~cannot~be~blank"]}
		GET /issues.json?cf_1=k1 => 200 "subject":"s" "total_count":1
		GET /issues.json?cf_1=k2 => 200 "issues":[] "total_count":0
		GET /issues.json?cf_9=k2 => 200 "total_count":2
		GET /issues.json?limit=1&offset=1 => 200 "subject":"s" !"other" "limit":1
		PUT /issues/1.json {"issue":{"status_id":5}} => 204 !{
		GET /issues.json?cf_1=k1 => 200 "total_count":0
		GET /issues.json?cf_1=k1&status_id=* => 200 "total_count":1
		DELETE /issues/1.json => 204
		DELETE /issues/1.json => 404`)+`
		GET /issues.json => 401 !{`)
	add("redmine: faults", rest.NewRedmine(rest.RedmineOptions{}).Fake, redmine(`
		POST /issues.json {"issue":{"project_id":"ops","subject":"s","description":"d"}} => 201 "description":"d"
		after 1s
		GET /issues.json => 200 "total_count":2 "description":"D"
		POST /issues.json {"issue":{"project_id":"ops","subject":"s"}} => 422 errors
		POST /issues.json {"issue":{"project_id":"ops","subject":"s"}} => 403 !{`),
		twice, fault.Fault{Kind: fault.NormalisedField, Nth: 1}, fault.Fault{Kind: fault.Refused, Nth: 2}, fault.Fault{Kind: fault.Refused, How: "403", Nth: 3})

	add = scened(t, all, "token gitea-token")
	g := rest.NewGitea(rest.GiteaOptions{})
	add("gitea: the search finds what quotes the text", g.Fake, strings.ReplaceAll(`
		POST ISSUES {"title":"s","body":"readback:k1","colour":"red"} => 201 "number":4 !colour
		GET ISSUES?q=READBACK:K1&state=all => 200 "number":4 "number":3 "number":1, X-Total-Count:~3
		GET ISSUES?q=readback:k1&state=all&type=issues => 200 "number":4 "number":1, X-Total-Count:~2
		GET ISSUES?q=readback:k1&state=all&limit=1&page=2 => 200 "number":3 !"number":4
		GET ISSUES?q=readback:k9 => 200 []
		PATCH ISSUES/4 {"state":"closed"} => 200 "state":"closed"
		GET ISSUES?q=readback:k1 => 200 !"number":4
		POST ISSUES/4/comments {"body":"see~readback:k9"} => 201 "body"
		GET ISSUES?q=readback:k9&state=all => 200 "number":4
		GET ISSUES/4/comments => 200 readback:k9 !.issue
		POST ISSUES {"body":"b"} => 422 [Title]:~Required
		POST ISSUES/9/comments {"body":"b"} => 404 "message":"issue~does~not~exist
		DELETE ISSUES/4 => 204
		GET ISSUES/4 => 404
		GET ISSUES Authorization:token~x => 401`, "ISSUES", "/api/v1/repos/acme/widgets/issues"))
	s := all["gitea: the search finds what quotes the text"]
	s.setup = func() {
		g.Seed("another", "", "is this like readback:k1?", nil)
		g.Seed("a pull request", "fixes readback:k1", "", rest.Object{"pull_request": map[string]any{"merged": false}})
	}
	all["gitea: the search finds what quotes the text"] = s
	add("gitea: faults", rest.NewGitea(rest.GiteaOptions{}).Fake, strings.ReplaceAll(`
		POST ISSUES {"title":"s","body":"readback:k1"} => 201 "number":1,
		after 1s
		GET ISSUES?q=readback:k1 => 200 READBACK:K1 "number":1, "number":2,
		GET ISSUES?q=readback:k1 => 200 []
		GET ISSUES/1 => 200`, "ISSUES", "/api/v1/repos/acme/widgets/issues"),
		twice, fault.Fault{Kind: fault.NormalisedField, Nth: 1}, fault.Fault{Kind: fault.LaggingRead, Nth: 2, Delay: 2e9})
}

// tableScenes are about systems of rows.
func tableScenes(t *testing.T, all map[string]scene) {
	row := func(index, id, key, cells string) string {
		return strings.NewReplacer("N", index, "ID", id, "KEY", key, "CELLS", cells).Replace(
			`POST /v4/spreadsheets/sheet1:batchUpdate {"requests":[{"insertDimension":{"range":{"sheetId":0,"dimension":"ROWS","startIndex":N,"endIndex":2}}},` +
				`{"updateCells":{"start":{"sheetId":0,"rowIndex":N,"columnIndex":0},"rows":[{"values":[CELLS]}],"fields":"userEnteredValue"}},` +
				`{"createDeveloperMetadata":{"developerMetadata":{"metadataId":ID,"metadataKey":"readback","metadataValue":"KEY","location":{"dimensionRange":{"sheetId":0,"dimension":"ROWS","startIndex":N,"endIndex":2}},"visibility":"DOCUMENT"}}}]}`)
	}
	look := func(key, option string) string {
		return `POST /v4/spreadsheets/sheet1/values:batchGetByDataFilter {"dataFilters":[{"developerMetadataLookup":{"metadataKey":"readback","metadataValue":"` + key + `"}}],"valueRenderOption":"` + option + `"}`
	}
	const ab, empty = `{"userEnteredValue":{"stringValue":"a"}},{"userEnteredValue":{"numberValue":10.5}},{"userEnteredValue":{"boolValue":true}},{"userEnteredValue":{"stringValue":""}},{}`, `{}`
	seeded := func(name string, s *rest.Sheets, lines string, met ...fault.Fault) {
		all[name] = scene{fake: s.Fake, login: "Bearer ya29.readback", lines: lines, setup: func() {
			s.Seed(0, []any{"Name", "Amount"}, nil)
			s.Seed(-1, []any{"other"}, nil)
			faults(t, s.Fake, met...)()
		}}
	}
	seeded("sheets: rows", rest.NewSheets(rest.SheetsOptions{}), `
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 {"spreadsheetId":"sheet1"} !valueRanges
		`+row("1", "77", "k1", ab)+` => 200 "replies":[{},{},{"createDeveloperMetadata":{"developerMetadata":{ "metadataId":77 "location"
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 "range":"Sheet1!A2:Z2" "values":[["a",10.5,true]]
		`+look("k1", "FORMATTED_VALUE")+` => 200 "values":[["a","10.5","TRUE"]]
		`+row("1", "77", "k1", ab)+` => 400 INVALID_ARGUMENT already~exists
		`+row("1", "78", "k2", empty)+` => 200
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 "range":"Sheet1!A3:Z3" "values":[["a",10.5,true]]
		`+look("k2", "UNFORMATTED_VALUE")+` => 200 "range":"Sheet1!A2:Z2" !"values":
		`+strings.Replace(row("1", "79", "k3", ab), "visibility", "visible", 1)+` => 400 requests[2].createDeveloperMetadata
		`+look("k3", "UNFORMATTED_VALUE")+` => 200 !valueRanges
		`+strings.Replace(row("1", "79", "k3", ab), "updateCells", "updateCell", 1)+` => 400 Unknown~name
		POST /v4/spreadsheets/sheet1/values:batchUpdateByDataFilter {"valueInputOption":"RAW","data":[{"dataFilter":{"developerMetadataLookup":{"metadataValue":"k1"}},"values":[["b",null]]}]} => 200 "totalUpdatedRows":1
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 "values":[["b",10.5,true]]
		POST /v4/spreadsheets/sheet1:batchUpdate {"requests":[{"deleteDimension":{"range":{"sheetId":0,"dimension":"ROWS","startIndex":2,"endIndex":3}}}]} => 200 "replies":[{}]
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 !valueRanges
		`+row("1", "77", "k1", ab)+` => 200
		GET /v4/spreadsheets/sheet1 => 200 "sheetId":0
		GET /v4/spreadsheets/other => 404 NOT_FOUND
		GET /v4/spreadsheets/sheet1 Authorization:x => 401 UNAUTHENTICATED`)
	seeded("sheets: a taken id is accepted, and faults", rest.NewSheets(rest.SheetsOptions{TakenAccepted: true}), `
		`+row("1", "77", "k1", ab)+` => 200
		`+row("1", "77", "k1", ab)+` => 200
		after 1s
		`+look("k1", "UNFORMATTED_VALUE")+` => 200 Sheet1!A2:Z2 Sheet1!A3:Z3 Sheet1!A5:Z5
		`+row("1", "79", "k3", ab)+` => 429 RESOURCE_EXHAUSTED !Retry-After`, twice, fault.Fault{Kind: fault.Throttled, Nth: 3})

	const id, team = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "11111111-1111-4111-8111-111111111111"
	ask := func(query string, variables map[string]any) string {
		raw, err := json.Marshal(map[string]any{"query": query, "variables": variables})
		if err != nil {
			t.Fatal(err)
		}
		return "POST /graphql " + strings.ReplaceAll(string(raw), " ", "~")
	}
	create := func(id, team string) string {
		return ask(`mutation M($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id identifier description } } }`,
			map[string]any{"input": map[string]any{"id": id, "teamId": team, "title": "t", "description": "x\n- one "}})
	}
	find := func(more string) string {
		return ask(`query Q($id: ID!) { issues(filter: {id: {eq: $id}}`+more+`) { nodes { id title trashed } pageInfo { hasNextPage } } }`, map[string]any{"id": id})
	}
	get := ask(`query Q($id: String!) { issue(id: $id) { id title trashed } }`, map[string]any{"id": id})
	add := scened(t, all, "lin_api_readback")
	add("linear: an id of the client's own", rest.NewLinear(rest.LinearOptions{}).Fake, `
		`+find("")+` => 200 "nodes":[] !errors
		`+get+` => 200 "data":null Entity~not~found:~Issue
		`+create(id, team)+` => 200 "success":true "id":"`+id+`" "description":"x\n*~one"
		`+create(id, team)+` => 200 "data":null "code":"INPUT_ERROR" this~id~already~exists
		`+create("not-a-uuid", team)+` => 200 "errors" UUID
		`+create(id, "t2")+` => 200 "errors"
		`+strings.Replace(create("", team), "description", "describe", 2)+` => 400 GRAPHQL_VALIDATION_FAILED
		`+find("")+` => 200 "id":"`+id+`" "hasNextPage":false
		`+ask(`mutation D { issueDelete(id: "`+id+`") { success entity { trashed } } }`, nil)+` => 200 "trashed":true
		`+find("")+` => 200 "nodes":[]
		`+find(", includeArchived: true")+` => 200 "trashed":true
		`+get+` => 200 "trashed":true
		`+create(id, team)+` => 200 this~id~already~exists
		`+ask(`{ issues(filter: {colour: {eq: "red"}}) { nodes { id } } }`, nil)+` => 200 not~defined
		`+get+` Authorization:x => 401 AUTHENTICATION_ERROR`)
	add("linear: refusals and faults", rest.NewLinear(rest.LinearOptions{Status: 400}).Fake, `
		`+create("", team)+` => lost
		`+create(id, team)+` => 200 "success":false "issue":null !errors
		`+create(id, team)+` => 400 "code":"RATELIMITED" X-Ratelimit-Requests-Reset:~946684803000
		`+create(id, "t2")+` => 400 INPUT_ERROR
		after 1s
		`+ask(`{ issues { nodes { id description } } }`, nil)+` => 200 000000000001" 000000000002" "description":"X\n*~ONE"`,
		fault.Fault{Kind: fault.LostAnswer, Nth: 1}, fault.Fault{Kind: fault.NormalisedField, Nth: 1}, twice,
		fault.Fault{Kind: fault.Refused, How: "success", Nth: 2}, fault.Fault{Kind: fault.Throttled, Nth: 3, Delay: 3 * time.Second})

	const table = "/v0/appReadback/Orders"
	upsert := `PATCH ` + table + ` {"performUpsert":{"fieldsToMergeOn":["Key"]},"records":[{"fields":{"Key":"k1","Name":"n","Amount":0,"Done":false}}]}`
	add = scened(t, all, "Bearer patReadback")
	add("airtable: upserts", rest.NewAirtable(rest.AirtableOptions{}).Fake, strings.ReplaceAll(`
		GET TABLE?filterByFormula={Key}='k1' => 200 {"records":[]}
		`+upsert+` => 200 "createdRecords":["rec00000000000001"] "updatedRecords":[] "fields":{"Amount":0,"Key":"k1","Name":"n"} !Done
		`+upsert+` => 200 "createdRecords":[] "updatedRecords":["rec00000000000001"]
		POST TABLE {"fields":{"Key":"k2","Name":""}} => 200 "id":"rec00000000000002" "fields":{"Key":"k2"}
		GET TABLE?filterByFormula=OR({Key}='k1',{Key}='k2')&pageSize=1 => 200 00001" !00002" "offset":"itr/1"
		GET TABLE?filterByFormula=OR({Key}='k1',{Key}='k2')&pageSize=1&offset=itr/1 => 200 00002" !offset
		GET TABLE?filterByFormula=AND({Key}='k1',{Name}='n') => 200 00001" !00002"
		GET TABLE?filterByFormula={Colour}='k1' => 422 "error":{ "type":"INVALID_FILTER_BY_FORMULA"
		PUT TABLE/rec00000000000001 {"fields":{"Key":"k1"}} => 200 "fields":{"Key":"k1"}
		POST TABLE {"fields":{"Key":"k1"}} => 200 00003"
		`+upsert+` => 422 more~than~one
		POST TABLE {"fields":{"Colour":"red"}} => 422 UNKNOWN_FIELD_NAME
		GET TABLE/rec9 => 404 {"error":"NOT_FOUND"}
		DELETE TABLE/rec00000000000003 => 200 "deleted":true
		GET /v0/appOther/x => 404 {"error":"NOT_FOUND"}
		GET TABLE Authorization:x => 401 "type":"AUTHENTICATION_REQUIRED"`, "TABLE", table))
	add("airtable: two upserts at the same time", rest.NewAirtable(rest.AirtableOptions{Race: time.Second}).Fake, upsert+` => 200 "createdRecords":["rec00000000000001"]
		`+upsert+` => 200 "createdRecords":["rec00000000000002"]
		after 2s
		`+upsert+` => 422`)
	add("airtable: too many requests", rest.NewAirtable(rest.AirtableOptions{PerSecond: 2}).Fake, strings.ReplaceAll(`
		GET TABLE => 200
		GET TABLE => 200
		`+upsert+` => 429 RATE_LIMIT_REACHED !Retry-After
		after 29s
		GET TABLE => 429
		after 2s
		GET TABLE => 200 {"records":[]}`, "TABLE", table))
	add("airtable: faults", rest.NewAirtable(rest.AirtableOptions{}).Fake, strings.ReplaceAll(`
		POST TABLE {"fields":{"Key":"k1","Name":"n"}} => 200 "Name":"n"
		after 1s
		GET TABLE => 200 00001" 00002" !Name
		POST TABLE {"fields":{"Key":"k1"}} => 429
		POST TABLE {"fields":{"Key":"k1"}} => 403 INVALID_PERMISSIONS`, "TABLE", table),
		fault.Fault{Kind: fault.DroppedField, Nth: 1}, twice, fault.Fault{Kind: fault.Throttled, Nth: 2}, fault.Fault{Kind: fault.Refused, How: "403", Nth: 3})

	add = scened(t, all, "Basic "+base64.StdEncoding.EncodeToString([]byte("robot:now-password")))
	now := func(lines string) string { return strings.ReplaceAll(lines, "TABLE", "/api/now/table/incident") }
	add("servicenow: incidents", rest.NewServiceNow(rest.ServiceNowOptions{ReadOnly: []string{"urgency"}}).Fake, now(`
		GET TABLE?sysparm_query=correlation_id=k1 => 200 {"result":[]}
		POST TABLE {"short_description":"s","correlation_id":"k1","priority":2,"urgency":"1","colour":"red"} => 201 Location:~https://acme.service-now.com/api/now/table/incident/00000000000000000000000000000001 "number":"INC0000001" "priority":"2" "urgency":"3" "opened_by":{"link" !colour
		POST TABLE {"short_description":"s","correlation_id":"k2"} => 201 "INC0000002"
		GET TABLE?sysparm_query=correlation_id=k1&sysparm_limit=2&sysparm_exclude_reference_link=true => 200 INC0000001 !INC0000002 "opened_by":"6816f79cc0a8016401c5a33be04be441"
		GET TABLE?sysparm_query=corelation_id=k1 => 200 INC0000001 INC0000002
		GET TABLE?sysparm_query=correlation_idINk1,k2^active=true&sysparm_limit=1&sysparm_fields=number => 200 {"number":"INC0000001"} !INC0000002 X-Total-Count:~2
		GET TABLE?sysparm_query=correlation_idINk2,k3 => 200 !INC0000001 INC0000002
		PATCH TABLE/00000000000000000000000000000001 {"description":"d"} => 200 "description":"d"
		DELETE TABLE/00000000000000000000000000000001 => 204
		GET TABLE/00000000000000000000000000000001 => 404 "status":"failure" No~Record~found
		GET TABLE Authorization:x => 401 User~Not~Authenticated
		GET /api/now/table/other => 404`))
	add("servicenow: nothing found is 404, and faults", rest.NewServiceNow(rest.ServiceNowOptions{NoneIs404: true}).Fake, now(`
		GET TABLE?sysparm_query=correlation_id=k1 => 404 No~Record~found
		POST TABLE {"short_description":"s","description":"d","correlation_id":"k1"} => 201 "description":"d"
		after 1s
		GET TABLE?sysparm_query=correlation_id=k1 => 200 "description":"D" INC0000001 INC0000002
		POST TABLE {"short_description":"s"} => 403 ACL
		POST TABLE {"short_description":"s"} => 429 Retry-After:~1`),
		fault.Fault{Kind: fault.NormalisedField, Nth: 1}, twice, fault.Fault{Kind: fault.Refused, How: "403", Nth: 2}, fault.Fault{Kind: fault.Throttled, Nth: 3})
}

// letterScenes are about mail, appointments, GitLab, people and contents.
func letterScenes(t *testing.T, all map[string]scene) {
	raw := base64.URLEncoding.EncodeToString([]byte("To: b@y.org\r\nSubject: hello\r\nMessage-ID: <k1@readback>\r\nX-Readback: k1\r\n\r\nText"))
	draft := `POST /gmail/v1/users/me/drafts {"message":{"raw":"` + raw + `"}}`
	const sent = `GET /gmail/v1/users/me/messages?q=rfc822msgid:k1@readback`
	const mail, send = "/gmail/v1/users/me", "POST /gmail/v1/users/me/drafts/send "
	gmail := func(lines string) string { return strings.ReplaceAll(lines, " MAIL", " "+mail) }
	add := scened(t, all, "Bearer ya29.readback")
	add("gmail: a draft is sent", rest.NewGmail(rest.GmailOptions{SentAfter: 3 * time.Second}).Fake, gmail(`
		`+sent+` => 200 {"resultSizeEstimate":0}
		`+draft+` => 200 "id":"r1" "id":"18f0000000000001" "DRAFT"
		GET MAIL/drafts/r1 => 200 "id":"r1" "name":"X-Readback","value":"k1"
		`+sent+` => 200 18f0000000000001
		`+sent+`%20in:sent => 200 !messages
		`+send+`{"id":"r1"} => 200 "labelIds":["SENT"] "id":"18f0000000000002" "threadId":"18f0000000000001"
		GET MAIL/drafts/r1 => 404 "reason":"notFound" "status":"NOT_FOUND"
		`+sent+`%20in:sent => 200 !messages
		`+send+`{"id":"r1"} => 404
		after 4s
		`+sent+`%20in:sent => 200 18f0000000000002
		GET MAIL/messages?q=rfc822msgid:<k2@readback> => 200 !messages
		GET MAIL/messages/18f0000000000002?format=metadata&metadataHeaders=x-readback => 200 "X-Readback" !Subject !data
		GET MAIL/messages/18f0000000000002 => 200 "value":"hello" "data":"VGV4dA=="
		POST MAIL/drafts {"message":{"raw":"***"}} => 400 ByteString
		`+draft+` => 200 "id":"r3"
		DELETE MAIL/drafts/r3 => 204
		GET MAIL/profile Authorization:x => 401 authError`))
	add("gmail: faults", rest.NewGmail(rest.GmailOptions{SpentIs400: true}).Fake, gmail(`
		`+draft+` => lost
		`+draft+` => 200 "id":"r2"
		`+send+`{"id":"r2"} => 502
		`+send+`{"id":"r2"} => 400
		after 5s
		GET MAIL/drafts/r1 => 200
		`+sent+`%20in:sent => 200 "resultSizeEstimate":2
		GET MAIL/messages/18f0000000000003 => 200 "HELLO"
		`+draft+` => 403 rateLimitExceeded`),
		fault.Fault{Kind: fault.LostAnswer, Nth: 1}, fault.Fault{Kind: fault.BadGateway, Nth: 3}, fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 3},
		fault.Fault{Kind: fault.NormalisedField, Nth: 3}, fault.Fault{Kind: fault.Throttled, How: "rateLimitExceeded", Nth: 5})

	const property = `"singleValueExtendedProperties":[{"id":"String~{8ECCC264-6880-4EBE-992F-8888D2EEAA1D}~Name~readback","value":"k1"}]`
	const message = `POST /v1.0/me/messages {"subject":"s","toRecipients":[{"emailAddress":{"address":"b@y.org"}}],` + property + `}`
	const filter = `GET /v1.0/me/mailFolders/SentItems/messages?$filter=singleValueExtendedProperties/Any(ep:%20ep/id%20eq%20'String%20{8ECCC264-6880-4EBE-992F-8888D2EEAA1D}%20Name%20readback'%20and%20ep/value%20eq%20'k1')`
	add = scened(t, all, "Bearer graph-token")
	graph := func(lines string) string { return strings.ReplaceAll(lines, " ME", " /v1.0/me") }
	add("graph: mail", rest.NewGraph(rest.GraphOptions{CopyAfter: 4 * time.Second}).Fake, graph(`
		`+message+` => 201 "id":"AAMk00000001=" "isDraft":true !readback
		POST ME/messages/AAMk00000001=/send => 202 !{
		`+filter+` => 200 "value":[]
		POST ME/messages/AAMk00000001=/send => 404 ErrorItemNotFound "request-id"
		after 5s
		`+filter+` => 200 "id":"AAMk00000002=" "isDraft":false !readback
		`+filter+`&$expand=singleValueExtendedProperties => 200 "value":"k1"
		`+strings.Replace(filter, "'k1'", "'k2'", 1)+` => 200 "value":[]
		GET ME/messages?$filter=internetMessageId%20eq%20'<1@example.com>' => 200 AAMk00000002=
		GET ME/messages?$filter=colour%20eq%20'red' => 400 ErrorInvalidUrlQueryFilter
		GET ME/messages/AAMk00000001= => 404 ErrorItemNotFound
		`+message+` Prefer:IdType="ImmutableId" => 201 "id":"AAMk00000003="
		POST ME/messages/AAMk00000003=/send => 202
		after 5s
		GET ME/messages/AAMk00000003= => 200 "isDraft":false
		POST ME/messages/AAMk00000003=/send => 202
		after 5s
		`+filter+` => 200 AAMk00000002= AAMk00000003= AAMk00000005=
		POST ME/messages {"subject":"s","colour":"red"} => 400 RequestBodyRead
		GET ME/messages Authorization:x => 401 InvalidAuthenticationToken`))
	event := `POST ME/events {"subject":"s","start":{"dateTime":"2026-12-01T10:00:00","timeZone":"UTC"},"end":{"dateTime":"2026-12-01T11:00:00","timeZone":"UTC"},"transactionId":"k1",` + property + `}`
	add("graph: events", rest.NewGraph(rest.GraphOptions{}).Fake, graph(`
		`+event+` => 201 "id":"AAMk00000001="
		`+strings.Replace(event, `"s"`, `"other"`, 1)+` => 201 "id":"AAMk00000001=" "subject":"s"
		`+strings.Replace(event, `"k1"`, `"k2"`, 1)+` => 201 "id":"AAMk00000003="
		PATCH ME/events/AAMk00000001= {"subject":"new"} => 200 "subject":"new"
		GET ME/events/AAMk00000001= => 200 "transactionId":"k1"
		`+strings.Replace(filter, "mailFolders/SentItems/messages", "events", 1)+` => 200 AAMk00000001= AAMk00000003=
		GET ME/events?$top=1 => 200 AAMk00000003= !AAMk00000001= @odata.nextLink
		DELETE ME/events/AAMk00000003= => 204
		GET ME/events/AAMk00000003= => 404
		POST ME/events {"subject":"s"} => 400 ErrorPropertyValidationFailure`))
	add("graph: a time-out that sends", rest.NewGraph(rest.GraphOptions{}).Fake, graph(`
		`+message+` => 201
		POST ME/messages/AAMk00000001=/send => 504
		after 1s
		`+filter+` => 200 AAMk00000002= AAMk00000003= "subject":"S"
		`+message+` => 429 Retry-After:~1`), fault.Fault{Kind: fault.BadGateway, How: "504", Nth: 2},
		fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 2}, fault.Fault{Kind: fault.NormalisedField, Nth: 2}, fault.Fault{Kind: fault.Throttled, Nth: 3})

	add = scened(t, all, "Bearer glpat-readback")
	gitlab := func(lines string) string { return strings.ReplaceAll(lines, "ISSUES", "/api/v4/projects/42/issues") }
	add("gitlab: an owner chooses the number", rest.NewGitLab(rest.GitLabOptions{Owner: true}).Fake, gitlab(`
		POST ISSUES {"title":"t","iid":7001,"labels":"readback::k1,bug","created_at":"2026-01-01T00:00:00Z","colour":"red"} => 201 "iid":7001 "labels":["bug","readback::k1"] "created_at":"2026-01-01T00:00:00Z" !colour X-Request-Id
		POST ISSUES {"title":"t","iid":7001} => 400 {"message":{"iid":["has~already~been~taken"]}}
		GET ISSUES?labels=readback::k1&state=all => 200 "iid":7001 X-Total:~1
		GET ISSUES?labels=readback::k1,nope => 200 []
		PUT ISSUES/7001 {"state_event":"close"} => 200 "state":"closed"
		GET ISSUES?state=opened => 200 []
		POST ISSUES {"title":""} => 400 {"message":{"title":["can't~be~blank"]}}
		POST ISSUES {"description":"d"} => 400 {"error":"title~is~missing"}
		DELETE ISSUES/7001 => 204
		GET ISSUES/7001 => 404 {"message":"404~Not~found"}
		GET /api/v4/projects/43/issues => 404
		GET ISSUES Authorization:x => 401 {"message":"401~Unauthorized"}`))
	add("gitlab: others do not, and faults", rest.NewGitLab(rest.GitLabOptions{}).Fake, gitlab(`
		POST ISSUES {"title":"t","iid":7001,"description":"d"} => 201 "iid":1, "description":"d"
		after 1s
		GET ISSUES => 200 "iid":1, "iid":3, "description":"D"
		GET ISSUES?per_page=1 => 200 "iid":3, X-Next-Page:~2
		POST ISSUES {"title":"t"} => 400 {"message":["Title~can't~be~blank"]}
		DELETE ISSUES/1 => 403 {"message":"403~Forbidden"}`),
		fault.Fault{Kind: fault.NormalisedField, Nth: 1}, twice, fault.Fault{Kind: fault.Refused, How: "list", Nth: 2})

	add = scened(t, all, "Basic "+base64.StdEncoding.EncodeToString([]byte("bamboo-key:x")))
	people := func(lines string) string { return strings.ReplaceAll(lines, "PEOPLE", "/api/v1/employees") }
	add("bamboohr: employees", rest.NewBambooHR(rest.BambooOptions{Unique: true}).Fake, people(`
		POST PEOPLE {"firstName":"Ada","lastName":"L","employeeNumber":"k1","photo":"x","jobTitle":"~Engineer"} => 201 Location:~https://acme.bamboohr.com/api/v1/employees/1 !{
		POST PEOPLE {"firstName":"Ada","lastName":"L","employeeNumber":"k1"} => 409 X-Bamboohr-Error-Message:~Duplicate~employee~number !{
		GET PEOPLE/directory => 200 "id":"1" "firstName":"Ada" !employeeNumber !photo
		GET PEOPLE?filter[employeeNumber]=k1&fields=employeeNumber => 200 "data":[{"employeeId":"1","employeeNumber":"k1","firstName":"Ada" "nextCursor":null
		GET PEOPLE?filter[employeeNumber]=k2 => 200 "data":[]
		GET PEOPLE?filter[colour]=red => 400 X-Bamboohr-Error-Message:~Unknown~field~colour
		GET PEOPLE/1?fields=jobTitle,employeeNumber,photo => 200 {"employeeNumber":"k1","id":"1","jobTitle":"Engineer"}
		POST PEOPLE/1 {"status":"Inactive","jobTitle":""} => 200 !{
		GET PEOPLE/directory => 200 "employees":[]
		GET PEOPLE/1?fields=jobTitle => 200 "jobTitle":null
		POST PEOPLE {"firstName":"Ada"} => 400 X-Bamboohr-Error-Message:
		GET PEOPLE/9 => 404 X-Bamboohr-Error-Message:~Employee~not~found
		GET PEOPLE/directory Authorization:x => 401 X-Bamboohr-Error-Message`))
	add("bamboohr: faults", rest.NewBambooHR(rest.BambooOptions{}).Fake, people(`
		POST PEOPLE {"firstName":"Ada","lastName":"L","employeeNumber":"k1","jobTitle":"e"} => 201 Location
		after 1s
		GET PEOPLE?fields=jobTitle&filter[employeeNumber]=k1 => 200 "employeeId":"1" "employeeId":"2" "jobTitle":null
		GET PEOPLE?page[limit]=1 => 200 "employeeId":"1" !"employeeId":"2" "nextCursor":"1"
		GET PEOPLE?page[after]=1 => 200 "employeeId":"2" !"employeeId":"1"
		POST PEOPLE {"firstName":"Ada","lastName":"L"} => 429 Retry-After:~9
		POST PEOPLE {"firstName":"Ada","lastName":"L"} => 503`),
		fault.Fault{Kind: fault.DroppedField, Nth: 1}, twice, fault.Fault{Kind: fault.Throttled, Nth: 2, Delay: 9 * time.Second}, fault.Fault{Kind: fault.BadGateway, How: "503", Nth: 3})

	add = scened(t, all, "Bearer sf-readback")
	hr := func(lines string) string {
		return strings.NewReplacer("POST UPSERT", "POST /odata/v2/upsert", "JSON", "$format=json", "META", `"__metadata":{"uri":"User"}`, "OF", "$filter=userId%20eq%20").Replace(lines)
	}
	const everyone = "%20and%20status%20in%20't','f','T','F','e','d'"
	add("successfactors: users", rest.NewSuccessFactors(rest.SuccessFactorsOptions{}).Fake, hr(`
		POST UPSERT?JSON {META,"userId":"k1","username":"ada","status":"active","title":"~Engineer","hireDate":"/Date(1767225600000)/"} => 200 {"d":[{"editStatus":"UPSERTED","httpCode":200,"index":0,"inlineResults":null,"key":"User/userId=k1","message":null,"status":"OK"}]}
		GET /odata/v2/User?JSON&OF'k1' => 200 {"d":{"results":[{ "status":"t" "title":"Engineer" "hireDate":"/Date(1767225600000)/" "email":null "lastModifiedDateTime":"/Date(946684800000+0000)/"
		GET /odata/v2/User?OF'k1' => 200 Content-Type:~application/atom+xml !k1
		GET /odata/v2/User?JSON&OF'k2' => 200 {"d":{"results":[]}}
		GET /odata/v2/User('k2')?JSON => 404 "code":"NotFoundException"
		POST UPSERT?JSON {"__metadata":{"uri":"User('k1')"},"title":"","custom01":"s"} => 200 "status":"OK"
		GET /odata/v2/User('k1')?JSON&$select=title,custom01 => 200 {"d":{"__metadata": "custom01":"s","title":"Engineer"}} !username
		POST UPSERT?JSON {META,"userId":"k2","username":"ada","status":"t"} => 200 "status":"ERROR" "httpCode":500 "message":"DUPLICATE_USERNAME~: "key":null
		POST UPSERT?JSON {META,"userId":"k2","username":"ADA"} => 200 "status":"ERROR" required
		POST UPSERT?JSON {META,"userId":"k2","username":"ADA","status":"f"} => 200 Cannot~upsert~an~inactive~user
		POST UPSERT?JSON&processInactiveEmployees=true {META,"userId":"k2","username":"ADA","status":"f"} => 200 "status":"OK"
		POST UPSERT?JSON {META,"userId":"k2","title":"Boss"} => 200 Cannot~upsert~an~inactive~user
		GET /odata/v2/User?JSON&OF'k2' => 200 {"d":{"results":[]}}
		GET /odata/v2/User?JSON&OF'k2'`+everyone+` => 200 "userId":"k2"
		GET /odata/v2/User('k2')?JSON => 200 "status":"f"
		POST /odata/v2/User('k1')?JSON {"title":null} X-HTTP-METHOD:MERGE => 200 !{
		POST /odata/v2/User('k2')?JSON {"title":"Boss"} X-HTTP-METHOD:MERGE => 500 inactive
		POST /odata/v2/User('k9')?JSON {"title":"Boss"} X-HTTP-METHOD:MERGE => 404
		GET /odata/v2/User('k1')?JSON&$select=title => 200 "title":null
		POST UPSERT?JSON&purgeType=record {META,"userId":"k1","username":"ada","status":"t"} => 200 "status":"OK"
		GET /odata/v2/User('k1')?JSON => 200 "custom01":null "hireDate":null
		POST UPSERT?JSON {META,"userId":"k1","status":"e"} => 500 "code":"COE_GENERAL_SERVER_FAILURE" [COE0019]
		POST UPSERT?JSON {META,"userId":"k1","hireDate":"2026-01-01"} => 400 [COE0019]
		POST UPSERT?JSON {META,"userId":"k1","colour":"red"} => 400 "code":"COE_PROPERTY_NOT_FOUND" "lang":"en-US"
		GET /odata/v2/User?JSON&$filter=colour%20eq%20'red' => 400 "code":"COE_PROPERTY_NOT_FOUND"
		GET /odata/v2/User?JSON&$filter=colour => 400
		GET /odata/v2/People?JSON => 404 "code":"COE_ENTITY_NOT_FOUND"
		GET /odata/v2/User?JSON&$top=1 => 200 "userId":"k1" !"userId":"k2" !__next
		GET /odata/v2/User?JSON Authorization:x => 403 "code":"LGN0007"`))
	add("successfactors: faults", rest.NewSuccessFactors(rest.SuccessFactorsOptions{}).Fake, hr(`
		POST UPSERT?JSON {META,"userId":"k1","username":"ada","status":"t","title":"e"} => 200 "status":"OK"
		GET /odata/v2/User?JSON&OF'k1' => 200 "title":null
		POST UPSERT?JSON {META,"userId":"k1","title":"e"} => 200 "status":"ERROR" "message":"Failed~to~add/update
		POST UPSERT?JSON {META,"userId":"k1","title":"e"} => 429 Retry-After:~300
		POST UPSERT?JSON {META,"userId":"k1","title":"f"} => 200 "status":"ERROR" "message":"Exception~caught
		GET /odata/v2/User?JSON&OF'k1' => 200 "title":"f"`),
		fault.Fault{Kind: fault.DroppedField, Nth: 1}, fault.Fault{Kind: fault.Refused, Nth: 2}, fault.Fault{Kind: fault.Throttled, Nth: 3, Delay: 300 * time.Second},
		fault.Fault{Kind: fault.BadGateway, How: "500", Nth: 4})

	const key = "AWS4-HMAC-SHA256~Credential=AKIDREADBACK/20000101/us-east-1/s3/aws4_request,~SignedHeaders=host,~Signature="
	signed := func(name string, o rest.S3Options, lines string, met ...fault.Fault) {
		add := scened(t, all, strings.ReplaceAll(key, "~", " ")+strings.Repeat("0", 64))
		add("s3: "+name, rest.NewS3(o).Fake, strings.ReplaceAll(lines, "KEY", "/readback/a/b.json"), met...)
	}
	signed("objects", rest.S3Options{}, `
		HEAD KEY => 404 !<
		GET KEY => 404 <Code>NoSuchKey</Code> <RequestId>
		PUT KEY [1,2] Content-Type:application/json If-None-Match:* X-Amz-Meta-Readback:k1 => 200 Etag:~"
		PUT KEY [3] Content-Type:application/json If-None-Match:* => 412 <Code>PreconditionFailed</Code>
		HEAD KEY => 200 X-Amz-Meta-Readback:~k1 Content-Length:~5 ![1,2]
		GET KEY => 200 [1,2] Content-Type:~application/json
		PUT KEY x Content-Type:text/plain If-Match:"no" => 412
		PUT KEY x Content-Type:text/plain => 200
		HEAD KEY => 200 !X-Amz-Meta
		GET /readback?list-type=2&prefix=a/ => 200 <Key>a/b.json</Key> <KeyCount>1</KeyCount>
		GET /readback?list-type=2&prefix=b => 200 <KeyCount>0</KeyCount>
		DELETE KEY If-Match:"no" => 412
		DELETE KEY => 204 !X-Amz-Delete-Marker
		DELETE KEY => 204
		DELETE KEY If-Match:"no" => 404 NoSuchKey
		GET KEY => 404 !X-Amz-Delete-Marker
		GET /other/x => 404 NoSuchBucket
		HEAD KEY Authorization:x => 403`)
	signed("versions", rest.S3Options{Versions: true}, `
		PUT KEY x Content-Type:text/plain => 200 X-Amz-Version-Id:~v1
		GET KEY => 200 X-Amz-Version-Id:~v1
		DELETE KEY => 204 X-Amz-Delete-Marker:~true
		GET KEY => 404 X-Amz-Delete-Marker:~true <Code>NoSuchKey</Code>
		PUT KEY x Content-Type:text/plain If-None-Match:* => 200 X-Amz-Version-Id:~v3`)
	signed("without the right to list", rest.S3Options{NoList: true}, `
		HEAD KEY => 403 !<
		GET KEY => 403 <Code>AccessDenied</Code>
		GET /readback?list-type=2 => 403
		PUT KEY x Content-Type:text/plain => 200
		HEAD KEY => 200`)
	signed("two at the same time, and faults", rest.S3Options{Race: time.Second}, `
		PUT KEY x Content-Type:text/plain If-None-Match:* X-Amz-Meta-Readback:k1 => lost
		PUT KEY x Content-Type:text/plain If-None-Match:* => 409 <Code>ConditionalRequestConflict</Code>
		after 2s
		PUT KEY x Content-Type:text/plain If-None-Match:* => 412
		HEAD KEY => 200 !X-Amz-Meta
		PUT KEY x Content-Type:text/plain => 503 SlowDown
		PUT KEY x Content-Type:text/plain => 403 AccessDenied`,
		fault.Fault{Kind: fault.LostAnswer, Nth: 1}, fault.Fault{Kind: fault.DroppedField, Nth: 1}, fault.Fault{Kind: fault.Throttled, Nth: 4}, fault.Fault{Kind: fault.Refused, Nth: 5})
}

// moreScenes are about what GitHub and HubSpot have beside issues and contacts.
func moreScenes(t *testing.T, all map[string]scene) {
	g := rest.NewGitHub(rest.GitHubOptions{})
	hub := func(lines string) string { return strings.ReplaceAll(lines, " REPO", " /repos/acme/widgets") }
	all["github: comments, pull requests and files"] = scene{fake: g.Fake, login: "Bearer github-token", setup: func() {
		g.SeedIssue("seeded", "", nil, nil)
		g.SeedComment(1, "is this readback:k1?")
		g.SeedPull("another", "outsider:b", "main", nil)
	}, lines: hub(`
		POST REPO/issues/1/comments {"body":"<!--~k1~-->"} => 201 "id":5000004 Location !.issue
		GET REPO/issues/1/comments => 200 "id":5000002 "id":5000004
		GET REPO/issues/1/comments?per_page=1 => 200 "id":5000002 !5000004 https://api.example.com/repositories/1/issues/1/comments?page=2
		GET /repositories/1/issues/1/comments?per_page=1&page=2 => 200 "id":5000004
		GET REPO/issues/1/comments?since=2100-01-01T00:00:00Z => 200 []
		GET REPO/issues/comments/5000004 => 200 k1
		PATCH REPO/issues/comments/5000004 {"body":"new"} => 200 "body":"new"
		DELETE REPO/issues/comments/5000004 => 204
		GET REPO/issues/comments/5000004 => 404
		POST REPO/issues/9/comments {"body":"b"} => 404
		POST REPO/issues/1/comments {"body":""} => 422 "body"
		POST REPO/pulls {"title":"t","head":"b","base":"main","body":"k1"} => 201 "number":5 "label":"acme:b"
		POST REPO/pulls {"title":"t","head":"b","base":"main"} => 422 A~pull~request~already~exists~for~acme:b.
		POST REPO/pulls {"title":"t","head":"main","base":"main"} => 422 "head"
		GET REPO/pulls?head=acme:b&state=all => 200 "number":5 !"number":3
		GET REPO/pulls?head=b => 200 "number":5 "number":3
		PATCH REPO/pulls/5 {"state":"closed"} => 200 "state":"closed"
		GET REPO/pulls?head=acme:b => 200 []
		POST REPO/pulls {"title":"t","head":"b","base":"main"} => 201
		GET REPO/contents/a/b.txt => 404
		PUT REPO/contents/a/b.txt {"message":"m","content":"aGVsbG8K"} => 201 "sha":"ce013625030ba8dba906f756967f9e9ca394464a" "path":"a/b.txt" !.text
		PUT REPO/contents/a/b.txt {"message":"m","content":"aGVsbG8K"} => 422 wasn't~supplied
		PUT REPO/contents/a/b.txt {"message":"m","content":"eA==","sha":"old"} => 409 a/b.txt~does~not~match~old
		PUT REPO/contents/a/b.txt {"message":"m","content":"eA==","sha":"ce013625030ba8dba906f756967f9e9ca394464a"} => 200
		PUT REPO/contents/a/b.txt {"message":"m","content":"eA==","branch":"other"} => 201
		GET REPO/contents/a/b.txt => 200 "content":"eA==\n" "encoding":"base64" !.text
		PUT REPO/contents/c.txt {"content":"eA=="} => 422 message
		PUT REPO/contents/c.txt {"message":"m","content":"*"} => 422 Base64
		GET /repos/acme/other/pulls => 404`)}
	add := scened(t, all, "Bearer github-token")
	add("github: faults of comments", rest.NewGitHub(rest.GitHubOptions{}).Fake, hub(`
		POST REPO/issues {"title":"t"} => 201
		POST REPO/issues/1/comments {"body":"b"} => lost
		after 1s
		GET REPO/issues/1/comments => 200 "id":5000002 "id":5000003 "body":"B"
		POST REPO/issues/1/comments {"body":"b"} => 403 secondary~rate~limit Retry-After`),
		fault.Fault{Kind: fault.LostAnswer, Nth: 2}, fault.Fault{Kind: fault.NormalisedField, Nth: 2}, fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 2}, fault.Fault{Kind: fault.Throttled, How: "secondary", Nth: 3})

	add = scened(t, all, "Bearer pat-readback")
	h := rest.NewHubSpot("pat-readback", nil, nil).Type("deals", []string{"colour"}, []string{"readback_key"}).Type("companies", nil, []string{"domain"}).Type("notes", nil, nil)
	add("hubspot: deals, companies and notes", h.Fake, strings.ReplaceAll(`
		POST CRM/deals {"properties":{"dealname":"d","amount":10,"readback_key":"k1","colour":"red"}} => 201 "id":"101" "amount":"10"
		POST CRM/deals {"properties":{"dealname":"d","readback_key":"K1"}} => 400 propertyName=readback_key 101~already~has~that~value
		POST CRM/deals {"properties":{"dealname":"d","domain":"x.org"}} => 400 PROPERTY_DOESNT_EXIST
		GET CRM/deals/k1?idProperty=readback_key => 200 "dealname":"d" "amount":"10" !email
		GET CRM/deals/k1?idProperty=dealname => 400 non-unique~0-3
		GET CRM/contacts/101 => 404 OBJECT_NOT_FOUND
		POST CRM/companies {"properties":{"name":"n","domain":"x.org"}} => 201 "id":"102"
		POST CRM/companies/batch/upsert {"inputs":[{"idProperty":"domain","id":"x.org","properties":{"name":"new"}}]} => 200 "id":"102" "new":false
		POST CRM/notes {"properties":{"hs_note_body":"b"}} => 400 hs_timestamp
		POST CRM/notes {"properties":{"hs_timestamp":"2026-01-01T00:00:00Z","hs_note_body":"b"},"associations":[{"to":{"id":"101"},"types":[{"associationCategory":"HUBSPOT_DEFINED","associationTypeId":214}]}]} => 201 "id":"103" !associations
		after 1s
		GET CRM/notes/103?associations=deals => 200 "associations":{"deals":{"results":[{"id":"101"
		GET CRM/notes/104 => 200 "hs_note_body":"b"
		GET /crm/v3/properties/deals/readback_key => 200 "hasUniqueValue":true
		GET CRM/tickets/1 => 404 resource~not~found`, "CRM", "/crm/v3/objects"), fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 7})
}
