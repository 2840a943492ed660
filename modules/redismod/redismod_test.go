package redismod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestInfo(t *testing.T) {
	got := parseInfo("# Server\r\nversion:7.0.15\r\nport:6379\r\nload:0.50\r\ndb0:keys=1,expires=0,avg=1.5\r\nnodes:a,2,\r\nmodule:name=x\r\nodd\r\nempty:\r\n")
	want := map[string]any{"version": "7.0.15", "port": int64(6379), "load": 0.5, "nodes": []any{"a", int64(2)}, "empty": "",
		"db0": map[string]any{"keys": int64(1), "expires": int64(0), "avg": 1.5}, "modules": []any{map[string]any{"name": "x"}}, "__raw__": []any{"odd"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
