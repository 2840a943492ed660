package cfn

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestReportNamesTheFirstFailure(t *testing.T) {
	c := &Compiled{Steps: []Step{{"a", "config", "files", "/a"}, {"b", "config", "commands", "go"}, {"c", "config", "services", "s"}}}
	got := c.report(map[string]any{
		"x": map[string]any{"__id__": "a", "result": true, "comment": "done"},
		"y": map[string]any{"__id__": "b", "result": false, "comment": "run", "changes": map[string]any{"retcode": int64(3), "stderr": "oh\nno"}},
	})
	if got["result"] != false || got["failed"] != "commands go: run (exit status 3): oh no" {
		t.Errorf("%v", got)
	}
	if steps := got["steps"].([]any); len(steps) != 3 || steps[2].(map[string]any)["comment"] != "The step did not run." {
		t.Errorf("%v", steps)
	}
}
