package sqlite3

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestSeveral(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "select 1;": false, "select 1; -- x": false, "select 1; /* x; y": false, "select ';'; ": false, "select 1; select 2": true,
		"select [;], \";\", `;` from t; x": true, "create temp trigger t after insert on a begin select 1; select 2; end;": false,
	} {
		if got := several(text); got != want {
			t.Errorf("several(%q) is %v", text, got)
		}
	}
}
