package minion

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// viaSudo runs a function as another user with sudo and salt-call, as option sudo_user asks
// (salt/executors/sudo.py). The arguments are passed as a list; no shell is involved.
func viaSudo(ctx context.Context, e *modules.Env, s *settings, fun string, args []any,
	kwargs map[string]any) modules.Result {
	user := s.text("sudo_user")
	cmd := []string{"sudo", "-n", "-u", user, "--", "salt-call", "--out", "json", "--metadata",
		"--no-return-event"}
	if dir := s.optional("config_dir"); dir != "" {
		cmd = append(cmd, "-c", dir)
	}
	if s.policy.LimitsMasters() {
		// Stock's salt-call fails on this unknown option.
		cmd = append(cmd, "--for-master")
	}
	cmd = append(cmd, "--", fun)
	for _, a := range args {
		cmd = append(cmd, argumentText(a))
	}
	for _, k := range slices.Sorted(maps.Keys(kwargs)) {
		cmd = append(cmd, k+"="+argumentText(kwargs[k]))
	}
	out, err := e.Cmd(ctx, modules.Command{Args: cmd})
	if err != nil {
		return failedResult(fun, err)
	}
	if out.ExitCode != 0 {
		return modules.Result{Return: strings.TrimRight(string(out.Stderr), "\n"),
			Retcode: out.ExitCode}
	}
	var reply struct {
		Local struct {
			Return  json.RawMessage `json:"return"`
			Retcode int             `json:"retcode"`
			Out     string          `json:"out"`
		} `json:"local"`
	}
	if err := json.Unmarshal(out.Stdout, &reply); err != nil {
		return failedResult(fun, modules.Errorf("cannot read what salt-call printed: %v", err))
	}
	var ret any
	if len(reply.Local.Return) > 0 {
		if ret, err = pyjson.Parse(reply.Local.Return); err != nil {
			return failedResult(fun, modules.Errorf("cannot read what salt-call printed: %v", err))
		}
	}
	return modules.Result{Return: ret, Retcode: reply.Local.Retcode,
		Success: reply.Local.Retcode == 0, Out: reply.Local.Out}
}

// argumentText returns a value in the form that salt-call parses from its command line.
func argumentText(v any) string {
	switch v := pyobj.From(v).(type) {
	case *pyobj.Dict, *pyobj.List:
		if s, err := pyjson.Format(v,
			pyjson.Options{Indent: -1, Comma: ",", Colon: ":"}); err == nil {
			return s
		}
	}
	return pyobj.Str(v)
}
