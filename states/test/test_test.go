package test_test

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/test"
)

func TestModule(t *testing.T) { statestest.Run(t, test.Module) }

func TestTestMode(t *testing.T) {
	rec := statestest.Apply(t, modulestest.Env(t), test.Module, "test.succeed_with_changes", map[string]any{"name": "x"}, true)
	if rec["result"] != nil || rec["comment"] != "If we weren't testing, this would be successful with changes" {
		t.Errorf("%v", rec)
	}
}
