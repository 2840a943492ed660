package state

import (
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// setRetcode sets the job's return code by the answer of a run (_set_retcode).
func setRetcode(c *modules.Call, ret any, high *pyobj.Dict) {
	code := 0
	if _, ok := ret.([]any); ok {
		code = codeCompiler
	} else if !stateresult.Succeeded(ret, high, true) {
		code = codeState
	}
	c.SetRetcode(code)
}

// filterRunning keeps what failed or changed (_filter_running).
func filterRunning(ret any) any {
	m, ok := ret.(map[string]any)
	if !ok {
		return ret
	}
	out := map[string]any{}
	for tag, v := range m {
		if rec, ok := v.(map[string]any); ok && (!pytext.Truth(rec["result"]) || pytext.Truth(rec["changes"])) {
			out[tag] = v
		}
	}
	return out
}
