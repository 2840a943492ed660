package protocol

import (
	"github.com/brine-salt/brine/protocol/payload"
)

// A Return is the result of a job, as a minion sends it (salt/minion.py:_prepare_return_pub). For compound commands
// Fun and FunArgs are arrays, and Return, Retcode and Success are maps by function, or arrays with
// multifunc_ordered.
type Return struct {
	JID      JID // of the job; [JIDRequest] or [JIDNoCache] without a job
	ID       string
	Fun      any   // string or []any
	FunArgs  []any // the job's arg, unchanged
	Return   any
	Retcode  any // int64
	Success  any // bool
	Out      string
	User     string
	MasterID string
	Metadata any

	// Raw is the load that the Return was parsed from, with all fields. Load ignores it.
	Raw map[string]any
}

// Load returns the request that sends the return: cmd "_return" and the fields that are set.
func (r Return) Load() map[string]any {
	args := r.FunArgs
	if args == nil {
		args = []any{}
	}
	m := map[string]any{
		"cmd": "_return", "id": r.ID, "jid": string(r.JID), "fun": r.Fun, "fun_args": args,
		"return": r.Return, "retcode": r.Retcode, "success": r.Success,
	}
	for _, f := range [...]struct{ key, value string }{
		{"out", r.Out}, {"user", r.User}, {"master_id", r.MasterID},
	} {
		if f.value != "" {
			m[f.key] = f.value
		}
	}
	if r.Metadata != nil {
		m["metadata"] = r.Metadata
	}
	return m
}

// ParseReturn reads the load of a _return request. Errors match [ErrMalformed]. The job id must be valid, or "req"
// or "nocache", because it becomes a file name (CVE-2025-22242). Fun, Retcode and Success are nil if absent. ID is
// what the load claims; compare it with [Verified.ID].
func ParseReturn(load map[string]any) (Return, error) {
	r := Return{Raw: load, Return: load["return"], Retcode: load["retcode"], Success: load["success"],
		Metadata: load["metadata"], Fun: load["fun"]}
	var ok bool
	if r.ID, ok = load["id"].(string); !ok {
		return Return{}, malformed("return: id is %T", load["id"])
	}
	if err := ValidID(r.ID); err != nil {
		return Return{}, err
	}
	jid, _ := payload.Text(load["jid"])
	// guard: CVE-2025-22242 TestCVE_2025_22242_JobIDPath
	if r.JID = JID(jid); !ValidJID(jid) && r.JID != JIDRequest && r.JID != JIDNoCache {
		return Return{}, malformed("return of %q: jid is %.40q", r.ID, jid)
	}
	if _, _, err := parseFunctions(r.Fun); err != nil && r.Fun != nil {
		return Return{}, malformed("return of %q: %v", r.ID, err)
	}
	if _, has := load["return"]; !has {
		return Return{}, malformed("return of %q: it returns nothing", r.ID)
	}
	switch args := load["fun_args"].(type) {
	case []any:
		r.FunArgs = args
	case nil:
	default:
		return Return{}, malformed("return of %q: fun_args is %T", r.ID, args)
	}
	r.Out = textOr(load["out"], "")
	r.User = textOr(load["user"], "")
	r.MasterID = textOr(load["master_id"], "")
	return r, nil
}
