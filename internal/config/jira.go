package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/internal/yamlfile"
)

type jiraSettings struct {
	Type          string     `yaml:"type"`
	URL           string     `yaml:"url"`
	User          string     `yaml:"user"`
	TokenEnv      string     `yaml:"token_env"`
	TokenFile     string     `yaml:"token_file"`
	TokenArgv     argv       `yaml:"token_command"`
	Connection    connection `yaml:",inline"`
	Deployment    string     `yaml:"deployment"`
	Property      string     `yaml:"property"`
	StickySession bool       `yaml:"sticky_session"`
	BrowseURL     string     `yaml:"browse_url"`
	Project       string     `yaml:"sample_project"`
	IssueType     string     `yaml:"sample_issue_type"`
	Issue         string     `yaml:"sample_issue"`
	Promises      promises   `yaml:",inline"`
}

func (s *jiraSettings) promises() promises { return s.Promises }

// deployments are the file's words for the two kinds of Jira.
var deployments = map[string]jira.Deployment{"": jira.Ask, "cloud": jira.Cloud, "datacenter": jira.DataCenter}

func (s *jiraSettings) destination(from origin) (connectors.Destination, error) {
	deployment, ok := deployments[s.Deployment]
	if !ok {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(deployments)), func(n string) bool { return n == "" })
		return connectors.Destination{}, fmt.Errorf("deployment: is %q; want %s, or the line left out to ask", yamlfile.Clip(s.Deployment), strings.Join(names, ", "))
	}
	if strings.Contains(s.URL, "@") || strings.Contains(s.BrowseURL, "@") {
		return connectors.Destination{}, errors.New("url: holds a user name or a password; want https://host")
	}
	token, err := Secret{s.TokenEnv, s.TokenFile, s.TokenArgv}.as("token").open(from)
	if err != nil {
		return connectors.Destination{}, err
	}
	transport, err := s.Connection.transport(s.Promises.Egress, s.URL, from)
	if err != nil {
		return connectors.Destination{}, err
	}
	c, err := jira.New(jira.Options{
		Transport: transport, URL: s.URL, User: s.User, Token: token, Deployment: deployment, Property: s.Property,
		StickySession: s.StickySession, BrowseURL: s.BrowseURL,
		Project: s.Project, IssueType: s.IssueType, Issue: s.Issue,
		SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout),
	})
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}
