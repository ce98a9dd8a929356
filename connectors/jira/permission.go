package jira

import (
	"context"
	"fmt"
	"net/url"
)

// permitted determines what a 404 leaves open: whether this account may see the issues of a
// project at all. An error means that it may not, or that this is unknown; then a missing issue
// is not absent.
//
// A visible project may still have hidden issues (security levels), and an issue may have been
// moved to a hidden project: Jira returns 404 there as well, and no call shows the difference.
//
// It is read once for all issues that are read together.
func (r *reader) permitted(project string) error {
	if err, asked := r.seen[project]; asked {
		return err
	}
	err := r.c.mayBrowse(r.ctx, project)
	r.seen[project] = err
	return err
}

func (c *Connector) mayBrowse(ctx context.Context, project string) error {
	if project == "" {
		return fmt.Errorf("%w: the project is not known; give it in /key/project", errNoAccess)
	}
	var answer struct {
		Permissions map[string]struct {
			Have bool `json:"havePermission"`
		} `json:"permissions"`
	}
	query := url.Values{"projectKey": {project}, "permissions": {"BROWSE_PROJECTS"}}
	found, err := c.get(ctx, "rest/api/2/mypermissions?"+query.Encode(), &answer)
	switch {
	case err != nil:
		return fmt.Errorf("ask whether the project %s can be seen: %w", project, err)
	case !found || !answer.Permissions["BROWSE_PROJECTS"].Have:
		return fmt.Errorf("%w: the project %s", errNoAccess, project)
	}
	return nil
}
