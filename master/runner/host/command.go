package host

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// Command runs a job on minions, with the master's timeouts unless the job has its own.
func (h *Host) Command(ctx context.Context, j Job) (map[string]Answer, error) {
	if h.Run == nil {
		return nil, Needs("way to its minions")
	}
	if j.TgtType == "" {
		j.TgtType = "glob"
	}
	if j.Timeout <= 0 {
		j.Timeout = h.Timeout
	}
	if j.Gather <= 0 {
		j.Gather = h.Gather
	}
	return h.Run(ctx, j)
}

// Text returns an argument that may be None, as text.
func Text(c *modules.Call, name string) string {
	if v := c.Value(name); pytext.Truth(v) {
		return pytext.Str(v)
	}
	return ""
}

// Patterns returns an argument that may be None, a comma-separated string, or a list (salt/utils/args.py:
// split_input).
func Patterns(c *modules.Call, name string) []string {
	list, ok := c.Value(name).([]any)
	if !ok {
		if all := Text(c, name); all != "" {
			return SplitInput(all)
		}
		return nil
	}
	if len(list) == 0 {
		return nil // as in stock, anything else means no filter
	}
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = pytext.Str(v)
	}
	return out
}

// Shown wraps a value with the outputter that the caller chose.
func Shown(c *modules.Call, v any) any {
	if out := Text(c, "outputter"); out != "" {
		return map[string]any{"outputter": out, "data": v}
	}
	return v
}

// Values runs a job and returns each minion's value.
func (h *Host) Values(ctx context.Context, j Job) (any, error) {
	answers, err := h.Command(ctx, j)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(answers))
	for id, a := range answers {
		if out[id] = a.Ordered; a.Ordered == nil {
			out[id] = a.Value
		}
	}
	return out, nil
}

// Take sets a job's arguments and timeout from a call.
func (j *Job) Take(c *modules.Call) (err error) {
	v, given := c.InOrder("arg")
	if !given {
		v = c.Value("arg")
	}
	switch v := ordered.ToWire(v).(type) {
	case nil:
	case []any:
		j.Args = v
	default:
		j.Args = []any{v}
	}
	if _, err := c.Map("kwarg"); err != nil {
		return err
	}
	if v, _ := c.InOrder("kwarg"); v != nil {
		j.Kwargs, _ = payload.Map(ordered.ToWire(v))
	}
	j.Timeout, err = Seconds(c, "timeout")
	return err
}

// Seconds returns a duration argument that may be None.
func Seconds(c *modules.Call, name string) (time.Duration, error) {
	if !pytext.Truth(c.Value(name)) {
		return 0, nil
	}
	return c.Seconds(name)
}

// SplitInput splits a comma-separated list (salt.utils.args.split_input).
func SplitInput(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}

// Meant returns the minions of a call's target. As in Salt, no target means all.
func (h *Host) Meant(c *modules.Call) ([]string, error) {
	if h.Match == nil || h.Cache == nil {
		return nil, Needs("cache of minions")
	}
	tgt := c.Value("tgt")
	if tgt == nil {
		tgt = "*"
	}
	return h.Match(c.Str("tgt_type"), tgt)
}
