// Package carbon is Salt's returner "carbon": the numbers in returns as metrics for Graphite. Salt's source:
// salt/returners/carbon_return.py. The mode "pickle" is not there: text says the same.
package carbon

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// Module returns the returner "carbon".
func Module() *modules.Module {
	return &modules.Module{Name: "carbon_return", Virtual: "carbon", Doc: "Send the numbers in returns to Graphite.", Funcs: []modules.Def{
		returners.Def("event_return", "Send the numbers in events to Graphite.", events, "events"),
		returners.Prep(),
		returners.Def("returner", "Send the numbers in a return to Graphite.", returner, "ret"),
	}}
}

func options(c *modules.Call, ret map[string]any) map[string]any {
	return returners.Options(c, "carbon", ret, []returners.Attr{{Option: "host", Config: "host"}, {Option: "port", Config: "port"},
		{Option: "skip", Config: "skip_on_error"}, {Option: "mode", Config: "mode"}}, nil)
}

type metrics struct {
	text strings.Builder
	at   int64
	skip bool
}

// walk collects numbers, each under the way that leads to it.
func (m *metrics) walk(path string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := m.walk(path+"."+k, v[k]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, x := range v {
			if err := m.walk(path+"."+pytext.Str(x), x); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(pytext.Str(v)), 64)
	if b, ok := v.(bool); ok {
		f, err = 0, nil
		if b {
			f = 1
		}
	}
	if err != nil {
		if m.skip {
			return nil
		}
		return modules.Errorf("Error in carbon returner, when trying to convert metric: %s, with val: %s", path, pytext.Str(v))
	}
	fmt.Fprintf(&m.text, "%s %s %d\n", path, pytext.Float(f), m.at)
	return nil
}

// timeout bounds connecting and sending.
const timeout = 30 * time.Second

func send(ctx context.Context, c *modules.Call, base string, data any, o map[string]any, skip bool) error {
	if !pytext.Truth(o["host"]) || !pytext.Truth(o["port"]) {
		c.Logger().Error("Host or port not defined")
		return nil
	}
	if mode, ok := o["mode"]; ok && !strings.EqualFold(pytext.Str(mode), "text") {
		return modules.Errorf("carbon mode %s is not available, only text", pytext.Str(mode))
	}
	m := metrics{at: c.Now().Unix(), skip: skip}
	if err := m.walk(base, data); err != nil {
		return err
	}
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(pytext.Str(o["host"]), pytext.Str(o["port"])))
	if err != nil {
		return fmt.Errorf("cannot connect to carbon: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(m.text.String())); err != nil {
		return fmt.Errorf("cannot send to carbon: %w", err)
	}
	return nil
}

func returner(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	o := options(c, ret)
	base := pytext.Str(ret["fun"])
	if !strings.HasPrefix(base, "virt.") {
		base += "." + strings.ReplaceAll(pytext.Str(ret["id"]), ".", "_")
	}
	return nil, send(ctx, c, base, ret["return"], o, pytext.Truth(o["skip"]))
}

func events(ctx context.Context, c *modules.Call) (any, error) {
	list, _ := c.Value("events").([]any)
	for _, x := range list {
		event, _ := x.(map[string]any)
		data, _ := event["data"].(map[string]any)
		if err := send(ctx, c, pytext.Str(event["tag"]), data["data"], options(c, nil), true); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
