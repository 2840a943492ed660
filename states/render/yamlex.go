package render

import (
	"context"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// renderYAMLEX reads YAML whose equal keys are merged instead of replaced (salt/renderers/yamlex.py).
func renderYAMLEX(_ context.Context, _ *modules.Call, _ *modules.Template, in any, _ string) (any, error) {
	text, err := textOf(in, "yamlex")
	if err != nil {
		return nil, err
	}
	v, err := yaml.ParseAggregate([]byte(text), "<file>")
	if err != nil {
		msg, line := yaml.Problem(err)
		return nil, &modules.RenderError{Msg: msg, Line: line, Text: msg, Type: "DeserializationError", Err: err}
	}
	if !pyobj.Truth(v) {
		return &pyobj.Dict{}, nil
	}
	return v, nil
}
