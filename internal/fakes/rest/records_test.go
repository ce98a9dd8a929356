package rest_test

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestRecords is [TestDestinations] for systems of records.
func TestRecords(t *testing.T) {
	all := map[string]scene{}
	trapScenes(t, all)
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
		GET /REST/2.0/tickets?query=CF.{Readback}='k1'&fields=Subject&per_page=1 => 200 "total":2 "pages":2 !"Subject"
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
