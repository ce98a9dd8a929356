// Package jira writes issues and comments to Jira.
package jira
