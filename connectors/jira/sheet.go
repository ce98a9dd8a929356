package jira

import (
	"context"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
)

// Where the claims are known from.
const (
	sourceAPI        = "https://developer.atlassian.com/cloud/jira/platform/rest/v3/ (OpenAPI swagger-v3.v3.json)"
	sourceReconcile  = "https://developer.atlassian.com/cloud/jira/platform/search-and-reconcile"
	sourceStrong     = "https://jira.atlassian.com/browse/JRACLOUD-96208"
	sourceProperty   = "https://developer.atlassian.com/cloud/jira/platform/modules/entity-property/"
	sourceRemoved    = "https://developer.atlassian.com/changelog/#CHANGE-2046"
	sourceBulk       = "https://mrrefactoring.github.io/jira.js/api/functions/cloud.bulkFetchIssues"
	sourceRate       = "https://developer.atlassian.com/cloud/jira/platform/rate-limiting"
	sourceRetry      = "https://jira.atlassian.com/browse/JRACLOUD-69262 ; https://jira.atlassian.com/browse/JRACLOUD-82801"
	sourceTwice      = "https://github.com/atlassian/atlassian-mcp-server/issues/132"
	sourceReplicated = "https://support.atlassian.com/jira/kb/how-jira-datacenter-node-recovers-after-offline-mode"
	sourceHealth     = "https://confluence.atlassian.com/jirakb/healthcheck-cluster-index-replication-738722192.html"
	sourceOpenSearch = "https://confluence.atlassian.com/jirakb/troubleshoot-index-problems-in-jira-data-center-opensearch-1721271491.html"
	sourceServer     = "https://developer.atlassian.com/server/jira/platform/entity-properties"
	sourceOwn        = "this package"
)

// Sheets is what is known about issues and comments of Cloud and Data Center,
// with the default options.
func Sheets() []connectors.Sheet {
	var all []connectors.Sheet
	for _, s := range []struct {
		name, system, kind string
		deployment         Deployment
		claims             []connectors.Claim
	}{
		{"jira-cloud-issue", "Jira Cloud", KindIssue, Cloud, slices.Concat(issueClaims(), cloudClaims())},
		{"jira-cloud-comment", "Jira Cloud", KindComment, Cloud, slices.Concat(commentClaims(), cloudLimits())},
		{"jira-datacenter-issue", "Jira Data Center", KindIssue, DataCenter, slices.Concat(issueClaims(), dataCenterClaims())},
		{"jira-datacenter-comment", "Jira Data Center", KindComment, DataCenter, slices.Concat(commentClaims(), dataCenterLimits())},
	} {
		c := &Connector{o: Options{Deployment: s.deployment, ReadTimeout: defaultReadTimeout,
			Token: func(context.Context) (string, error) { return "", nil }}}
		if s.deployment == DataCenter {
			assumeOfCloud(s.claims)
		}
		profile := c.Profiles()[s.kind]
		profile.Kind = s.kind
		all = append(all, connectors.Sheet{Name: s.name, System: s.system, Kind: s.kind, Type: "jira", Profile: profile, Claims: s.claims})
	}
	return all
}

// assumeOfCloud marks what is documented only for Cloud: it probably also holds for Data Center.
func assumeOfCloud(claims []connectors.Claim) {
	for n, c := range claims {
		if strings.Contains(c.Source, "/cloud/") {
			claims[n].Assumed = true
		}
	}
}

// issueClaims hold for both kinds of Jira.
func issueClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "None. The API document lists no idempotency header on any write of issues; a client that repeats a create makes a second issue, as has been seen.", Source: sourceAPI + " ; " + sourceTwice},
		{About: connectors.TopicLookup, Says: "The stamp goes into an entity property and a label in the one create call. A search can find the label; the property proves which write made the issue. JQL finds a property only where an app declares it as indexed.", Source: sourceProperty},
		{About: connectors.TopicStrong, Says: "GET of one issue by key or id reads the database. The vendor does not use the word; its documentation of lag is about searches only.", Source: sourceAPI, Assumed: true},
		{About: connectors.TopicStrong, Says: "Jira answers 404 for issues that do not exist and for issues that the account may not see. readback checks the permission for the project before an issue counts as absent; security levels and moves to hidden projects cannot be distinguished from absence.", Source: sourceAPI},
		{About: connectors.TopicHorizon, Says: "No bound on late landing is published. Five minutes is a default of ours.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicConditional, Says: "None. There is no ETag and no If-Match; 409 on an edit or a transition is a conflict inside Jira and not a precondition that can be set, so it leaves open what was applied.", Source: sourceAPI},
		{About: connectors.TopicUnique, Says: "An edit and a delete go to the id of one issue with given values: a repeat meets the same issue or none. Ids are never used again. A create has no unique key.", Source: sourceAPI},
		{About: connectors.TopicUnique, Says: "A repeated transition runs its side effects twice if the workflow leads from a status to itself, for example by a transition from all statuses. So no repeat of an update is assumed harmless: an update of unknown fate is sent again only when it is known not to have been applied.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicUndo, Says: "A create is undone by DELETE, which is permanent and refused for an issue with subtasks; an edit by setting the values from before, null where nothing was set; a transition by one back, if the workflow has the edge.", Source: sourceAPI},
		{About: connectors.TopicIrreversible, Says: "E-mails, webhooks and automations that a write has set off, the number of a deleted issue, and a delete itself. The record can be read back and undone, so no write type is called irreversible.", Source: sourceAPI},
		{About: connectors.TopicValues, Says: "Version 2 of the API takes and gives wiki markup as strings. Summaries are trimmed to one line of 255 characters; labels are a set without blanks; what is not set is null; times have an offset without a colon.", Source: sourceAPI},
		{About: connectors.TopicValues, Says: "An edit ignores the status and answers 204; only a transition changes it.", Source: sourceAPI},
	}
}

func cloudClaims() []connectors.Claim {
	return slices.Concat([]connectors.Claim{
		{About: connectors.TopicLookup, Says: "POST search/jql by label, with bounded JQL, named fields and page tokens; reconcileIssues makes up to 50 known ids consistent, which a create whose answer was lost does not have. The older search answers 410.", Source: sourceReconcile + " ; " + sourceRemoved},
		{About: connectors.TopicStrong, Says: "bulkfetch reads up to 100 issues; missing and hidden ones are simply not in the answer.", Source: sourceBulk},
		{About: connectors.TopicLimits, Says: "The bulk fetch is called in version 2 of the API, which gives texts as strings; the vendor's page is of version 3. Where it does not exist, issues are read one by one.", Source: sourceBulk, Assumed: true},
		{About: connectors.TopicLagging, Says: "search/jql may lag by a few seconds to minutes; the search that it replaced was strongly consistent.", Source: sourceReconcile + " ; " + sourceStrong},
		{About: connectors.TopicSettle, Says: "No bound on the lag of the index is published. Five minutes is a default of ours.", Source: sourceReconcile, Assumed: true},
		{About: connectors.TopicValues, Says: "Users are named by account ID.", Source: sourceAPI},
	}, cloudLimits())
}

func cloudLimits() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLimits, Says: "Bursts per tenant and endpoint, writes per issue, and for apps points. 429 has Retry-After in seconds or X-RateLimit-Reset, maybe without seconds, or neither; a 5xx with Retry-After is no proof that nothing was applied.", Source: sourceRate + " ; " + sourceRetry},
		{About: connectors.TopicLimits, Says: "The numbers of the limits are not published for every plan.", Source: sourceRate, Assumed: true},
	}
}

func dataCenterClaims() []connectors.Claim {
	return slices.Concat([]connectors.Claim{
		{About: connectors.TopicLookup, Says: "POST search by label. search/jql, reconcileIssues and the bulk fetch do not exist.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicLagging, Says: "Each node has its own index and follows the others; the health check warns when one lags by more than two minutes. With OpenSearch the search is near real time. A sticky session reads from the node that accepted the write.", Source: sourceReplicated + " ; " + sourceHealth + " ; " + sourceOpenSearch},
		{About: connectors.TopicSettle, Says: "No bound on the lag of a node is published. Five minutes is a default of ours.", Source: sourceHealth, Assumed: true},
		{About: connectors.TopicValues, Says: "Users are named by name.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicLookup, Says: "An issue can be created with entity properties, of 255 characters in the key and 32 KB in the value; JQL finds them only where a plugin declares the index.", Source: sourceServer},
	}, dataCenterLimits())
}

func dataCenterLimits() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLimits, Says: "A bucket of tokens that the administrator sets; 429 has retry-after in seconds.", Source: sourceOwn, Assumed: true},
	}
}

// commentClaims hold for both kinds of Jira.
func commentClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "None. A comment that is posted twice is there twice.", Source: sourceAPI},
		{About: connectors.TopicLookup, Says: "The stamp and the reference are in a property of the comment that goes in with the create. All comments of the issue are listed and their properties read: together on Cloud (comment/list, 1000 ids), one by one on Data Center.", Source: sourceAPI},
		{About: connectors.TopicStrong, Says: "The list of an issue's comments and a comment by its id come from the database. The vendor does not use the word; its documentation of lag is about searches only.", Source: sourceAPI, Assumed: true},
		{About: connectors.TopicLagging, Says: "None is used: comments are not searched for.", Source: sourceOwn},
		{About: connectors.TopicSettle, Says: "None is needed, since no index takes part in the lookup.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicHorizon, Says: "No bound on late landing is published. Five minutes is a default of ours.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicConditional, Says: "None: no ETag and no If-Match.", Source: sourceAPI},
		{About: connectors.TopicUnique, Says: "An edit and a delete go to the id of one comment: a repeat meets the same comment or none. A create has no unique key.", Source: sourceAPI},
		{About: connectors.TopicUndo, Says: "A create is undone by a delete, an edit by the text and visibility from before.", Source: sourceAPI},
		{About: connectors.TopicIrreversible, Says: "E-mails to watchers and to those who are mentioned, and a delete itself.", Source: sourceAPI},
		{About: connectors.TopicValues, Says: "Texts are wiki markup in version 2 of the API. An edit replaces text and visibility together: what it leaves out is lost, so the connector sends both.", Source: sourceOwn, Assumed: true},
	}
}
