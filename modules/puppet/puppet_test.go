package puppet

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name             string
		args             []any
		kwargs           map[string]any
		subcommand, line string
	}{
		{"default", nil, nil, "agent", " --test --color false"},
		{"options", []any{"debug"}, map[string]any{"tags": "a,b", "__pub_jid": "1", "color": "ansi"}, "agent", " --debug --test --color ansi --tags a,b"},
		{"apply", []any{"apply", "/a.pp", "noop"}, nil, "apply", "/a.pp --noop --color false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			subcommand, line, err := commandLine(c.args, c.kwargs)
			if subcommand != c.subcommand || line != c.line || err != nil {
				t.Errorf("%q %q %v, want %q %q", subcommand, line, err, c.subcommand, c.line)
			}
		})
	}
	if _, _, err := commandLine([]any{"apply"}, nil); err == nil {
		t.Error("apply without a manifest is no error")
	}
}
