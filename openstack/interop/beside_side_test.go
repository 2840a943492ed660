//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/openstack/heat"
	"github.com/brine-salt/brine/openstack/lab"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// besideSide is the stack and the guest for one side of a case.
type besideSide struct {
	c           *besideCase
	ours        bool
	id          string // of the stack
	server      string // Heat's name of the server
	guest       *lab.Guest
	said        string                // output of Boot
	env         []string              // of the guest's scripts
	known       map[string]string     // data from Heat, after it was queried
	labels      map[string]string     // names for random values
	deployments map[string]deployment // by id
}

func (s *besideSide) kind() string {
	if s.ours {
		return "ours"
	}
	return "original"
}

func (s *besideSide) stack() string { return "beside-" + s.c.name + "-" + s.kind() }

func (s *besideSide) guestName() string { return "beside-" + s.c.name[:2] + "-" + s.kind() }

func (s *besideSide) ends() string {
	if s.ours {
		return s.c.Ends
	}
	return s.c.EndsOriginal
}

// run performs the steps of the side.
func (s *besideSide) run(ctx context.Context, set original.Set, salt, files string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.kind(), err)
		}
	}()
	s.labels, s.deployments = map[string]string{s.stack(): "<stack>", s.guestName(): "<guest>"}, map[string]deployment{}
	template := strings.ReplaceAll(s.c.Template, "@FILES@", files)
	if s.id, err = cloud.Heat.Create(ctx, s.stack(), template, lab.StackArgs{}); err != nil {
		return err
	}
	s.labels[s.id] = "<stack id>"
	if s.guest, err = cloud.StartGuest(ctx, s.guestName()); err != nil {
		return err
	}
	conf, err := s.awaitServer(ctx)
	if err != nil {
		return err
	}
	if err := s.install(ctx, set, salt, conf); err != nil {
		return err
	}
	if err := s.boot(ctx); err != nil {
		return err
	}
	if strings.HasSuffix(s.ends(), "_IN_PROGRESS") {
		return nil
	}
	if err := statuses.await(ctx, s.id, s.ends()); err != nil {
		return err
	}
	for _, u := range s.c.Updates {
		if err := cloud.Heat.Update(ctx, s.id, template, lab.StackArgs{Parameters: u.Parameters}); err != nil {
			return err
		}
		statuses.forget()
		if err := statuses.await(ctx, s.id, "UPDATE_COMPLETE"); err != nil {
			return err
		}
		if err := s.boot(ctx); err != nil {
			return err
		}
	}
	return nil
}

// path returns the stack's path in heat-api.
func (s *besideSide) path(rest string) string { return "/stacks/" + s.stack() + "/" + s.id + rest }

// awaitServer waits until the stack has the server, and returns the configuration of its guest's collectors.
func (s *besideSide) awaitServer(ctx context.Context) (heat.Conf, error) {
	for {
		var out struct{ Resource lab.Resource }
		err := cloud.Heat.Call(ctx, "GET", s.path("/resources/server"), nil, &out)
		section, _ := out.Resource.Attributes["os_collect_config"].(map[string]any)
		if conf := heat.FromMetadata(map[string]any{"os-collect-config": section}); err == nil && conf != nil && out.Resource.Status == "CREATE_COMPLETE" {
			s.server = out.Resource.PhysicalID
			s.labels[s.server] = "<server>"
			s.learn(section)
			return conf, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server is %s: %w %w", out.Resource.Status, ctx.Err(), err)
		case <-time.After(time.Second):
		}
	}
}

// stackStatuses holds the statuses of all stacks. It makes one request per second for all: a request per stack would
// load heat-api more than the guests do.
type stackStatuses struct {
	mu   sync.Mutex
	when time.Time         // guarded by mu
	all  map[string]string // guarded by mu; by id
	err  error             // guarded by mu
}

var statuses stackStatuses

func (s *stackStatuses) of(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.when) > time.Second {
		var out struct{ Stacks []lab.Stack }
		s.err = cloud.Heat.Call(ctx, "GET", "/stacks?limit=1000", nil, &out)
		s.all, s.when = map[string]string{}, time.Now()
		for _, stack := range out.Stacks {
			s.all[stack.ID] = stack.Status
		}
	}
	return s.all[id], s.err
}

// forget makes the next call of of query Heat.
func (s *stackStatuses) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.when = time.Time{}
}

// await waits until a stack has a status. Another final status of the same action is an error.
func (s *stackStatuses) await(ctx context.Context, id, want string) error {
	action, _, _ := strings.Cut(want, "_")
	for {
		status, err := s.of(ctx, id)
		if err == nil && status == want {
			return nil
		}
		if err == nil && strings.HasPrefix(status, action) && !strings.HasSuffix(status, "_IN_PROGRESS") {
			return fmt.Errorf("the stack is %s, not %s", status, want)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the stack is %q, not %q: %w %w", status, want, ctx.Err(), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// cfnData is what user data of Heat's format HEAT_CFNTOOLS leaves, and a file of credentials.
const cfnData = `set -e
mkdir -p /var/lib/heat-cfntools /etc/cfn /var/lib/heat-config/hooks
printf '%[1]s' > /var/lib/heat-cfntools/cfn-metadata-server
printf '[Boto]\ncfn_region_name = heat\ncfn_region_endpoint = 127.0.0.1\n' > /var/lib/heat-cfntools/cfn-boto-cfg
printf 'AWSAccessKeyId=%%s\nAWSSecretKey=%%s\n' "$ACCESS" "$SECRET" > /etc/cfn/cfn-credentials
`

// besideInterval is the longest pause of the agents between two polls in seconds. Shorter ones would keep the
// services busy.
const besideInterval = "8"

// install makes the guest's file system that of an image, and starts the agent.
func (s *besideSide) install(ctx context.Context, set original.Set, salt string, conf heat.Conf) error {
	value := func(name string) string { return conf.Get("cfn", name, "") }
	s.env = []string{"STACK=" + s.stack(), "ACCESS=" + value("access_key_id"), "SECRET=" + value("secret_access_key")}
	data := fmt.Sprintf(cfnData, strings.TrimSuffix(strings.TrimSuffix(cloud.CFNURL(), "/"), "/v1"))
	if s.ours {
		for _, name := range []string{"os-collect-config", "cfn-init", "cfn-hup", "cfn-signal", "cfn-get-metadata"} {
			data += "ln -sf " + ours("heat-minion") + " /usr/bin/" + name + "\n"
		}
		data += "ln -sf " + set.Program("os-apply-config") + " /usr/bin/os-apply-config\n"
	} else if err := set.LayOut(s.guest.Path("/"), salt); err != nil {
		return err
	}
	if _, err := s.shell(ctx, data+s.c.Setup); err != nil {
		return err
	}
	if s.c.Agent == "none" {
		return nil
	}
	if err := s.guest.WriteFile("/etc/os-collect-config.conf",
		strings.Replace(conf.Text(), "[DEFAULT]\n", "[DEFAULT]\ncommand = os-refresh-config\n", 1), 0o600); err != nil {
		return err
	}
	// Metadata replaces the file and does not contain the interval, which is set where it persists.
	if !s.ours {
		_, err := s.guest.Start("agent", nil, "/usr/bin/os-collect-config", "--polling-interval", besideInterval)
		return err
	}
	options := map[string]any{"collectors": map[string]any{"polling_interval": besideInterval}}
	maps.Copy(options, s.c.Minion)
	text, err := yaml.Marshal(map[string]any{"heat": options})
	if err != nil {
		return err
	}
	if err := s.guest.WriteFile("/etc/salt/minion", text, 0o600); err != nil {
		return err
	}
	_, err = s.guest.Start("agent", nil, ours("heat-minion"), "minion", "-c", "/etc/salt")
	return err
}

// shell runs a script in the guest with the variables of the case.
func (s *besideSide) shell(ctx context.Context, script string) (string, error) {
	return s.guest.Run(ctx, append(append([]string{"env"}, s.env...), "sh", "-c", script)...)
}

func (s *besideSide) boot(ctx context.Context) error {
	if s.c.Boot == "" {
		return nil
	}
	out, err := s.shell(ctx, s.c.Boot)
	s.said += out
	return err
}

func (s *besideSide) close() {
	if s.guest != nil {
		s.guest.Close()
	}
}

// fields returns the files that the guest has written by name, with random values replaced by names, and Heat's data
// if it was queried.
func (s *besideSide) fields() (map[string]string, error) {
	if s.guest == nil || s.server == "" {
		return nil, fmt.Errorf("%s: there is nothing to compare", s.kind())
	}
	raw := map[string]string{"boot": s.said}
	files, err := s.guest.Changes()
	if err != nil {
		return nil, err
	}
	for path, shown := range files {
		if v, ok := parseShown(path, shown); ok {
			s.learn(v)
		}
		if strings.HasSuffix(path, ".json.orig") {
			shown, _, _ = strings.Cut(shown, " ") // the first metadata, which depends on when the agent polled
		}
		raw["file "+path] = canonical(path, shown)
	}
	maps.Copy(raw, s.known)
	replace := s.replacer()
	out := map[string]string{}
	for name, value := range raw {
		out[replace(name)] = replace(value)
	}
	return out, nil
}

// heatFields returns Heat's data: the stack, its outputs, the events of each resource, and each deployment.
func (s *besideSide) heatFields(ctx context.Context) (map[string]string, error) {
	f := map[string]string{}
	var out struct {
		Stack       lab.Stack
		Events      []lab.Event
		Resources   []lab.Resource
		Deployments []map[string]any `json:"software_deployments"`
	}
	for _, path := range []string{s.path(""), s.path("/events?sort_dir=asc&limit=10000"), s.path("/resources"), "/software_deployments?server_id=" + s.server} {
		if err := cloud.Heat.Call(ctx, "GET", path, nil, &out); err != nil {
			return nil, err
		}
	}
	f["stack"] = out.Stack.Status + ": " + out.Stack.Reason
	for name, v := range out.Stack.Outputs() {
		f["output "+name] = indented(v)
	}
	for _, e := range out.Events {
		if e.Resource == s.stack() { // the stack's own: its status is compared
			continue
		}
		// Heat reports a signal and the change that it caused in two threads, so that either may come first.
		field := "event " + e.Resource
		if strings.HasPrefix(e.Status, "SIGNAL_") {
			field = "event of a signal " + e.Resource
		}
		f[field] += e.Status + ": " + e.Reason + "\n"
	}
	names := map[string]string{}
	for _, r := range out.Resources {
		names[r.PhysicalID] = r.Name
		if r.PhysicalID != "" && s.labels[r.PhysicalID] == "" {
			s.labels[r.PhysicalID] = "<" + r.Name + ">"
		}
	}
	for i, d := range out.Deployments {
		name := names[fmt.Sprint(d["id"])]
		if name == "" {
			name = fmt.Sprintf("of a group, %d", i+1)
		}
		f["signal "+name] = indented(map[string]any{"action": d["action"], "status": d["status"], "status_reason": d["status_reason"],
			"output_values": d["output_values"]})
	}
	return f, nil
}

func indented(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return b.String()
}

var jsonFiles = regexp.MustCompile(`\.json(\.orig|\.last)?$|/last_metadata[^/]*$`)

// parseShown is the JSON in a file of the list of changes.
func parseShown(path, shown string) (any, bool) {
	fields := strings.SplitN(shown, " ", 3)
	if len(fields) < 3 || !jsonFiles.MatchString(path) {
		return nil, false
	}
	var v any
	return v, json.Unmarshal([]byte(fields[2]), &v) == nil
}

// canonical is a file in a form that does not depend on the order of keys.
func canonical(path, shown string) string {
	fields := strings.SplitN(shown, " ", 3)
	if v, ok := parseShown(path, shown); ok {
		return fields[0] + " " + fields[1] + " " + indented(v)
	}
	if path == "/etc/os-collect-config.conf" && len(fields) == 3 {
		if conf, err := heat.ParseConf(fields[2], path); err == nil {
			return fields[0] + " " + fields[1] + " " + conf.Text()
		}
	}
	return shown
}

// randomInputs are inputs of deployments, and keys of the section os-collect-config, whose values are random or name the stack.
var randomInputs = []string{"deploy_signal_id", "deploy_server_id", "deploy_stack_id", "deploy_username", "deploy_user_id", "deploy_password", "deploy_project_id", "project_id",
	"access_key_id", "secret_access_key", "user_id", "password", "stack_id", "metadata_url", "creation_time"}

// A deployment is one in the metadata. Each update of a stack creates another one with the same name.
type deployment struct{ name, created string }

// labelDeployments assigns labels to the ids of deployments. Those with the same name are numbered by time.
func (s *besideSide) labelDeployments() {
	ids := slices.SortedFunc(maps.Keys(s.deployments), func(a, b string) int {
		return strings.Compare(s.deployments[a].created, s.deployments[b].created)
	})
	count := map[string]int{}
	for _, id := range ids {
		name := s.deployments[id].name
		count[name]++
		s.labels[id] = fmt.Sprintf("<%s %d>", name, count[name])
	}
}

// learn finds random values in metadata: ids of deployments, credentials, times.
func (s *besideSide) learn(v any) {
	label := func(v any, name string) {
		if text, ok := v.(string); ok && len(text) > 8 {
			s.labels[text] = "<" + strings.TrimPrefix(name, "deploy_") + ">" // the user of the collectors has values in common with deployments
		}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			s.learn(x)
		}
	case map[string]any:
		for key, x := range v {
			if slices.Contains(randomInputs, key) {
				label(x, key)
			}
			s.learn(x)
		}
		inputs, _ := v["inputs"].([]any)
		values := map[string]string{}
		for _, x := range inputs {
			in, _ := x.(map[string]any)
			name, _ := in["name"].(string)
			values[name] = fmt.Sprint(in["value"])
			if slices.Contains(randomInputs, name) {
				label(in["value"], name)
			}
		}
		if values["deploy_resource_name"] != "" {
			if id, ok := v["id"].(string); ok {
				s.deployments[id] = deployment{values["deploy_resource_name"] + " " + values["deploy_action"], fmt.Sprint(v["creation_time"])}
			}
		}
	}
}

// tokens are values that are random wherever they are: tokens of keystone, signed addresses. projects are in addresses of heat-api.
var (
	tokens   = regexp.MustCompile(`gAAAA[\w=-]{40,}|https?://[^\s"']*(Signature|temp_url_sig)=[^\s"']*`)
	projects = regexp.MustCompile(`/v1/[0-9a-f]{32}/stacks/`)
)

// randomNames are names that Heat makes for resources.
var randomNames = regexp.MustCompile(`<stack>-([\w-]+)-[a-z2-7]{12}\b`)

// replacer returns a function that replaces random values by names, longer values first.
func (s *besideSide) replacer() func(string) string {
	s.labelDeployments()
	values := slices.SortedFunc(maps.Keys(s.labels), func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, s.labels[v])
		if b, err := json.Marshal(v); err == nil && string(b) != `"`+v+`"` { // as it is in JSON
			pairs = append(pairs, strings.Trim(string(b), `"`), s.labels[v])
		}
	}
	r := strings.NewReplacer(pairs...)
	return func(text string) string {
		text = projects.ReplaceAllString(text, "/v1/<project>/stacks/")
		return randomNames.ReplaceAllString(r.Replace(tokens.ReplaceAllString(text, "<secret>")), "<stack>-$1-<random>")
	}
}
