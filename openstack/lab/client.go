//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Client uses Heat's orchestration API as one user.
type Client struct {
	k    *keystone
	base string
}

// StackArgs are the optional arguments of a stack.
type StackArgs struct {
	Parameters map[string]any
	// Environment is the YAML text of an environment file.
	Environment string
	// Files are the files for get_file in the template, by name.
	Files map[string]string
	// Timeout is the stack's timeout, rounded up to minutes. 0 means Heat's default of one hour.
	Timeout time.Duration
	// Rollback undoes a failed creation.
	Rollback bool
	// Existing keeps the parameters and the environment of the stack where an update does not set them.
	Existing bool
}

// A Stack is Heat's description of a stack.
type Stack struct {
	ID     string `json:"id"`
	Name   string `json:"stack_name"`
	Status string `json:"stack_status"`
	Reason string `json:"stack_status_reason"`
	// Updated is the start of the last update in Heat's format: in UTC, to the second.
	Updated string `json:"updated_time"`
	Output  []struct {
		Key   string `json:"output_key"`
		Value any    `json:"output_value"`
		Error string `json:"output_error"`
	} `json:"outputs"`
}

// Outputs returns the values of the stack's outputs.
func (s *Stack) Outputs() map[string]any {
	m := map[string]any{}
	for _, o := range s.Output {
		m[o.Key] = o.Value
	}
	return m
}

// A Resource is Heat's description of a resource.
type Resource struct {
	Name       string         `json:"resource_name"`
	Type       string         `json:"resource_type"`
	Status     string         `json:"resource_status"`
	Reason     string         `json:"resource_status_reason"`
	PhysicalID string         `json:"physical_resource_id"`
	Attributes map[string]any `json:"attributes"`
}

// An Event is one line of a stack's history.
type Event struct {
	Resource string `json:"resource_name"`
	Status   string `json:"resource_status"`
	Reason   string `json:"resource_status_reason"`
	Time     string `json:"event_time"`
}

// call sends a request below the project's path.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	_, project, err := c.k.signIn(ctx, false)
	if err != nil {
		return err
	}
	return c.k.call(ctx, method, c.base+"/v1/"+project+path, in, out)
}

// Call sends a request to a path of heat-api below the project's path, for calls that have no method here.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	return c.call(ctx, method, path, in, out)
}

// Token returns the user's token and the id of the project.
func (c *Client) Token(ctx context.Context) (token, project string, err error) {
	return c.k.signIn(ctx, false)
}

func (a StackArgs) body(name, template string) map[string]any {
	b := map[string]any{"template": template, "disable_rollback": !a.Rollback}
	if name != "" {
		b["stack_name"] = name
	}
	if a.Parameters != nil {
		b["parameters"] = a.Parameters
	}
	if a.Environment != "" {
		b["environment"] = a.Environment
	}
	if a.Files != nil {
		b["files"] = a.Files
	}
	if a.Timeout > 0 {
		b["timeout_mins"] = int((a.Timeout + time.Minute - 1) / time.Minute)
	}
	return b
}

// Create starts the creation of a stack from a YAML template, and returns the stack's id. It does not wait.
func (c *Client) Create(ctx context.Context, name, template string, args StackArgs) (string, error) {
	var out struct{ Stack struct{ ID string } }
	if err := c.call(ctx, http.MethodPost, "/stacks", args.body(name, template), &out); err != nil {
		return "", err
	}
	return out.Stack.ID, nil
}

// Update starts an update of a stack, and returns after the update has begun.
func (c *Client) Update(ctx context.Context, name, template string, args StackArgs) error {
	before, err := c.show(ctx, name, false)
	if err != nil {
		return err
	}
	method := http.MethodPut
	if args.Existing {
		method = http.MethodPatch
	}
	if err := c.call(ctx, method, "/stacks/"+before.Name+"/"+before.ID, args.body("", template), nil); err != nil {
		return err
	}
	return c.awaitBegin(ctx, "update", before, func(now *Stack) bool { return now.Updated != before.Updated || now.Status != before.Status })
}

// awaitBegin waits until an action of a stack has begun. Heat answers earlier, and the end of an earlier action could
// be mistaken for the end of this one.
func (c *Client) awaitBegin(ctx context.Context, action string, before *Stack, begun func(now *Stack) bool) error {
	for {
		now, err := c.show(ctx, before.ID, false)
		switch {
		case err == nil && begun(now):
			return nil
		case err != nil && (isNotFound(err) || !isTemporary(err)):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the %s of %s does not begin: %w", action, before.Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// path returns the canonical path of a stack, because heat-api redirects from the short one.
func (c *Client) path(ctx context.Context, name string) (string, error) {
	s, err := c.show(ctx, name, false)
	if err != nil {
		return "", err
	}
	return "/stacks/" + s.Name + "/" + s.ID, nil
}

// Show returns a stack by name or id, with its outputs.
func (c *Client) Show(ctx context.Context, name string) (*Stack, error) {
	return c.show(ctx, name, true)
}

// show returns a stack. For its outputs, the engine must compute the attributes of all resources in them.
func (c *Client) show(ctx context.Context, name string, outputs bool) (*Stack, error) {
	var out struct{ Stack Stack }
	if err := c.call(ctx, http.MethodGet, fmt.Sprintf("/stacks/%s?resolve_outputs=%t", url.PathEscape(name), outputs), nil, &out); err != nil {
		return nil, err
	}
	return &out.Stack, nil
}

// Action runs an action of a stack: suspend, resume, check, cancel_update, cancel_without_rollback.
func (c *Client) Action(ctx context.Context, name, action string) error {
	path, err := c.path(ctx, name)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path+"/actions", map[string]any{action: nil}, nil)
}

// Delete starts the deletion of a stack, and returns after the deletion has begun. A missing stack is not an error.
func (c *Client) Delete(ctx context.Context, name string) error {
	before, err := c.show(ctx, name, false)
	if err == nil {
		err = c.call(ctx, http.MethodDelete, "/stacks/"+before.Name+"/"+before.ID, nil, nil)
	}
	if err == nil && before.Status == "DELETE_FAILED" {
		err = c.awaitBegin(ctx, "deletion", before, func(now *Stack) bool { return now.Status != before.Status })
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

func isNotFound(err error) bool {
	var h *HTTPError
	return errors.As(err, &h) && h.Status == http.StatusNotFound
}

// Wait waits until a stack has no action in progress and returns it. If the stack ends in another state than want,
// for example CREATE_COMPLETE, the error contains the reasons of the failed resources. If want is "", any state is
// accepted.
func (c *Client) Wait(ctx context.Context, name, want string) (*Stack, error) {
	action, _, _ := strings.Cut(want, "_")
	for {
		s, err := c.show(ctx, name, false)
		switch {
		case err != nil && ctx.Err() == nil && !isTemporary(err):
			return nil, err
		case err == nil && (s.Status == want || hasEnded(s.Status, action)):
			if want != "" && s.Status != want {
				return s, fmt.Errorf("stack %s is %s, not %s: %s%s", name, s.Status, want, s.Reason, c.failures(ctx, name))
			}
			return c.Show(ctx, name)
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("stack %s is not %s: %w: %s", name, want, ctx.Err(), c.describe(name))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// hasEnded reports whether a stack's status means that the awaited action cannot continue: it has ended, or the stack
// was rolled back or deleted instead.
func hasEnded(status, action string) bool {
	during, result, _ := strings.Cut(status, "_")
	return result != "IN_PROGRESS" && (strings.HasPrefix(status, action) || during == "DELETE" || during == "ROLLBACK" && action == "CREATE")
}

// isTemporary reports whether a failed request may succeed later: the engine may only be unavailable for a while.
func isTemporary(err error) bool {
	var h *HTTPError
	return !errors.As(err, &h) || h.Status >= http.StatusInternalServerError
}

// WaitGone waits until a stack is deleted.
func (c *Client) WaitGone(ctx context.Context, name string) error {
	for {
		s, err := c.show(ctx, name, false)
		switch {
		case isNotFound(err), err == nil && s.Status == "DELETE_COMPLETE":
			return nil
		case err != nil && !isTemporary(err):
			return err
		case err == nil && s.Status == "DELETE_FAILED":
			return fmt.Errorf("stack %s is %s: %s%s", name, s.Status, s.Reason, c.failures(ctx, name))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stack %s is not deleted: %w: %s", name, ctx.Err(), c.describe(name))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// failures returns the names of the failed resources with their reasons.
func (c *Client) failures(ctx context.Context, name string) string {
	rs, err := c.Resources(ctx, name)
	if err != nil {
		return "; its resources: " + err.Error()
	}
	var b strings.Builder
	for _, r := range rs {
		if strings.HasSuffix(r.Status, "_FAILED") {
			fmt.Fprintf(&b, "\n%s %s: %s", r.Name, r.Status, r.Reason)
		}
	}
	return b.String()
}

// describe returns the status and resources of a stack, for the error when a wait timed out.
func (c *Client) describe(name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := c.show(ctx, name, false)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Status, s.Reason)
	rs, err := c.Resources(ctx, name)
	if err != nil {
		return err.Error()
	}
	for _, r := range rs {
		fmt.Fprintf(&b, "\n%s %s %s %s", r.Name, r.Type, r.Status, r.Reason)
	}
	return b.String()
}

// Resources lists the resources of a stack.
func (c *Client) Resources(ctx context.Context, name string) ([]Resource, error) {
	path, err := c.path(ctx, name)
	if err != nil {
		return nil, err
	}
	var out struct{ Resources []Resource }
	return out.Resources, c.call(ctx, http.MethodGet, path+"/resources", nil, &out)
}

// Resource returns one resource of a stack.
func (c *Client) Resource(ctx context.Context, name, resource string) (*Resource, error) {
	path, err := c.path(ctx, name)
	if err != nil {
		return nil, err
	}
	var out struct{ Resource Resource }
	return &out.Resource, c.call(ctx, http.MethodGet, path+"/resources/"+resource, nil, &out)
}

// WaitResource waits until ok accepts a resource. ok gets nil while the resource does not exist.
func (c *Client) WaitResource(ctx context.Context, name, resource string, ok func(*Resource) bool) (*Resource, error) {
	for {
		r, err := c.Resource(ctx, name, resource)
		if err != nil {
			r = nil
		}
		if ok(r) {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("resource %s of %s: %w: %v %s", resource, name, ctx.Err(), err, c.describe(name))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Metadata returns the metadata of a resource: for a server, the data that its guest polls.
func (c *Client) Metadata(ctx context.Context, name, resource string) (map[string]any, error) {
	path, err := c.path(ctx, name)
	if err != nil {
		return nil, err
	}
	var out struct{ Metadata map[string]any }
	return out.Metadata, c.call(ctx, http.MethodGet, path+"/resources/"+resource+"/metadata", nil, &out)
}

// Signal sends a signal to a resource.
func (c *Client) Signal(ctx context.Context, name, resource string, body any) error {
	path, err := c.path(ctx, name)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path+"/resources/"+resource+"/signal", body, nil)
}

// Events returns the history of a stack, oldest first.
func (c *Client) Events(ctx context.Context, name string) ([]Event, error) {
	path, err := c.path(ctx, name)
	if err != nil {
		return nil, err
	}
	var out struct{ Events []Event }
	return out.Events, c.call(ctx, http.MethodGet, path+"/events?sort_dir=asc&limit=10000", nil, &out)
}

// ResourceTypes lists the resource types that the engine knows.
func (c *Client) ResourceTypes(ctx context.Context) ([]string, error) {
	var out struct {
		Types []json.RawMessage `json:"resource_types"`
	}
	if err := c.call(ctx, http.MethodGet, "/resource_types", nil, &out); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range out.Types {
		var s string
		if err := json.Unmarshal(t, &s); err != nil {
			return nil, fmt.Errorf("unexpected resource type %s", t)
		}
		names = append(names, s)
	}
	return names, nil
}

func splitLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
}
