package heat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// Deployment is a software deployment in the metadata.
type Deployment struct {
	ID, Name, Group, CreationTime string
	Config                        any // text, or a map
	Inputs                        []Input
	Outputs                       []string
	Options                       map[string]any
	// Raw is the original deployment. For a component it has the resolved group and configuration.
	Raw map[string]any
}

// Input is an input of a deployment.
type Input struct {
	Name, Type string
	Value      any
}

// maxID limits the id of a deployment, which is used as a file name.
const maxID = 128

// goodID reports whether an id can be used as a file name. Heat's ids are UUIDs.
func goodID(id string) bool {
	return id != "" && len(id) <= maxID && id[0] != '.' && strings.IndexFunc(id, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// NewDeployment parses a deployment in metadata. After an error it contains the parts that were valid, so that the
// failure can be signalled.
func NewDeployment(v any) (*Deployment, error) {
	raw, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("damaged metadata: a deployment must be a map, not %s", kind(v))
	}
	d := &Deployment{Raw: raw, Config: raw["config"]}
	var errs []error
	for name, to := range map[string]*string{"id": &d.ID, "name": &d.Name, "group": &d.Group, "creation_time": &d.CreationTime} {
		switch v := raw[name].(type) {
		case string:
			*to = v
		case nil:
		default:
			errs = append(errs, fmt.Errorf("%s must be text, not %s", name, kind(v)))
		}
	}
	if !goodID(d.ID) {
		errs = append(errs, fmt.Errorf("id %.40q cannot be used", d.ID))
		d.ID = ""
	}
	switch v := raw["options"].(type) {
	case map[string]any:
		d.Options = v
	case nil:
	default:
		errs = append(errs, fmt.Errorf("options must be a map, not %s", kind(v)))
	}
	switch d.Config.(type) {
	case nil, string, map[string]any, []any:
	default:
		errs = append(errs, fmt.Errorf("config must be text or a map, not %s", kind(d.Config)))
	}
	errs = append(errs, d.readInputs(raw["inputs"]), d.readOutputs(raw["outputs"]))
	if err := errors.Join(errs...); err != nil {
		return d, fmt.Errorf("damaged metadata: %w", err)
	}
	return d, nil
}

func (d *Deployment) readInputs(v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		return fmt.Errorf("inputs must be a list, not %s", kind(v))
	}
	var errs []error
	for i, v := range list {
		in, _ := v.(map[string]any)
		name, ok := in["name"].(string)
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("input %d has no name", i+1))
			continue
		}
		t, _ := in["type"].(string)
		value, has := in["value"]
		if !has {
			value = ""
		}
		if _, isText := value.(string); t == "String" && !isText { // as heat-config does
			value = pytext.Str(value)
			in["value"] = value
		}
		d.Inputs = append(d.Inputs, Input{name, t, value})
	}
	return errors.Join(errs...)
}

func (d *Deployment) readOutputs(v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		return fmt.Errorf("outputs must be a list, not %s", kind(v))
	}
	for i, v := range list {
		out, _ := v.(map[string]any)
		name, ok := out["name"].(string)
		if !ok || name == "" || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("output %d has no name that can be used", i+1)
		}
		d.Outputs = append(d.Outputs, name)
	}
	return nil
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a truth value"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "a number"
}

// Input returns the value of an input as text, or "" if it is missing.
func (d *Deployment) Input(name string) string {
	for _, in := range d.Inputs {
		if in.Name == name {
			return asText(in.Value)
		}
	}
	return ""
}

// asText returns a value in the form for environment variables: texts unchanged, and other values as JSON.
func asText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return pytext.Str(v)
	}
	return text
}

// ConfigText returns the configuration as text. A map is formatted as JSON.
func (d *Deployment) ConfigText() string {
	if d.Config == nil {
		return ""
	}
	return asText(d.Config)
}

// errNoTool means that a component has no configuration for the action.
var errNoTool = errors.New("the component has no configuration for this action")

// resolve replaces the group component by the tool and configuration for the deployment's action. It returns
// errNoTool if there is none.
func (d *Deployment) resolve() error {
	if d.Group != "component" {
		return nil
	}
	config := d.Config
	if text, ok := config.(string); ok {
		v, err := pyjson.Parse([]byte(text))
		if err != nil {
			return fmt.Errorf("the configuration of a component must be a map: %w", err)
		}
		config = v
	}
	all, _ := config.(map[string]any)
	list, _ := all["configs"].([]any)
	action := d.Input("deploy_action")
	for _, v := range list {
		c, _ := v.(map[string]any)
		actions, _ := c["actions"].([]any)
		tool, _ := c["tool"].(string)
		for _, a := range actions {
			if a == action && tool != "" {
				d.Group, d.Config = tool, c["config"]
				d.Raw["group"], d.Raw["config"] = tool, c["config"]
				return nil
			}
		}
	}
	return errNoTool
}

// Ungrouped reports whether the deployment is for os-apply-config, which reads it from the collected files.
func (d *Deployment) Ungrouped() bool {
	return d.Group == "" || d.Group == "os-apply-config" || d.Group == "Heat::Ungrouped"
}

// Result is the data that a deployment signals: deploy_stdout, deploy_stderr, deploy_status_code and its outputs.
type Result map[string]any

// Keys of a Result.
const (
	keyStdout = "deploy_stdout"
	keyStderr = "deploy_stderr"
	keyStatus = "deploy_status_code"
)

// failed returns the result of a deployment that did not run.
func failed(format string, args ...any) Result {
	return Result{keyStdout: "", keyStderr: fmt.Sprintf(format, args...), keyStatus: int64(1)}
}

// Status returns deploy_status_code, or 0 if it is missing.
func (r Result) Status() int {
	switch n := r[keyStatus].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	case int:
		return n
	case string:
		var i int
		if _, err := fmt.Sscan(n, &i); err == nil {
			return i
		}
		return 1
	}
	return 0
}

// encode returns a value as JSON for services, without HTML escapes.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("{}") // cannot fail for values that came from JSON
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
