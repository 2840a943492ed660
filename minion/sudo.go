package minion

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// viaSudo runs a function as another user: through sudo and salt-call, as option sudo_user asks
// (salt/executors/sudo.py). The arguments are passed as a list; no shell sees them.
func viaSudo(ctx context.Context, e *modules.Env, s *settings, fun string, args []any, kwargs map[string]any) modules.Result {
	user := s.text("sudo_user", "")
	cmd := []string{"sudo", "-n", "-u", user, "--", "salt-call", "--out", "json", "--metadata", "--no-return-event"}
	if dir := s.text("config_dir", ""); dir != "" {
		cmd = append(cmd, "-c", dir)
	}
	cmd = append(cmd, "--", fun)
	for _, a := range args {
		cmd = append(cmd, argument(a))
	}
	for _, k := range slices.Sorted(maps.Keys(kwargs)) {
		cmd = append(cmd, k+"="+argument(kwargs[k]))
	}
	out, err := e.Cmd(ctx, modules.Command{Args: cmd})
	if err != nil {
		return failure(fun, err)
	}
	if out.ExitCode != 0 {
		return modules.Result{Return: strings.TrimRight(string(out.Stderr), "\n"), Retcode: out.ExitCode}
	}
	var reply struct {
		Local struct {
			Return  any    `json:"return"`
			Retcode int    `json:"retcode"`
			Out     string `json:"out"`
		} `json:"local"`
	}
	dec := json.NewDecoder(bytes.NewReader(out.Stdout))
	dec.UseNumber()
	if err := dec.Decode(&reply); err != nil {
		return failure(fun, modules.Errorf("cannot read what salt-call printed: %v", err))
	}
	ret := plain(reply.Local.Return)
	return modules.Result{Return: ret, Retcode: reply.Local.Retcode, Success: reply.Local.Retcode == 0, Out: reply.Local.Out}
}

// argument is a value as salt-call reads it back from its command line.
func argument(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any, map[string]any:
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return pytext.Str(v)
}

// plain gives JSON's numbers the types of results.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}
