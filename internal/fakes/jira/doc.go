// Package jira is a Jira in memory, Cloud or Data Center, with the faults of the real one,
// for tests and examples.
//
// Issues are read as they are; the search index lags by a configured time. An edit answers 204
// and drops the status silently. A client that may not see a project gets
// 404. The old search is gone on Cloud (410); the new one, the bulk fetch and
// comment/list do not exist on Data Center. Answers are lost, cut, redirected, throttled and
// late, one fault at a time ([Site.Set]). What really happened is in the effect log
// ([Site.Effects]), which no client can change.
//
// A [Site] is an [net/http.Handler]; [Site.Transport] carries requests to it without a network,
// for testing/synctest bubbles.
//
// It does not know screens, security levels, issue links, attachments, worklogs or JQL beyond
// labels, project, AND, OR and brackets. It has one workflow, and its rate limit is a fault, not
// a bucket.
package jira
