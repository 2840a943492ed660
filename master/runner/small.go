package runner

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/wol"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// eventModule declares the runner event (salt/runners/event.py).
func (f funcs) eventModule() *modules.Module {
	return &modules.Module{Name: "event", Doc: "The master's event bus.", Funcs: []modules.Def{
		{Name: "send", Doc: `Fire an event on the master's bus.

tag
    The event's tag.
data
    A map.

    salt-run event.send my/tag '{"key": "value"}'`, Params: []modules.Param{{Name: "tag"}, {Name: "data", Optional: true}},
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				if f.Fire == nil {
					return nil, host.Needs("event bus")
				}
				data := map[string]any{}
				if pytext.Truth(c.Value("data")) {
					var err error
					if data, err = c.Map("data"); err != nil {
						return nil, err
					}
				}
				if err := f.Fire(ctx, c.Str("tag"), data); err != nil {
					return nil, err
				}
				return true, nil
			}},
	}}
}

// configModule declares the runner config (salt/runners/config.py).
func (f funcs) configModule() *modules.Module {
	return &modules.Module{Name: "config", Doc: "The master's configuration.", Funcs: []modules.Def{
		{Name: "get", Doc: `An option of the master; a delimiter in the key reaches into it.

    salt-run config.get file_roots
    salt-run config.get file_roots:base`, Params: []modules.Param{{Name: "key"}, {Name: "default", Default: ""}, {Name: "delimiter", Default: ":"}},
			Run: func(_ context.Context, c *modules.Call) (any, error) {
				if v, ok := traverse(f.Opts, strings.Split(c.Str("key"), c.Str("delimiter"))); ok {
					return v, nil
				}
				return c.Value("default"), nil
			}},
	}}
}

// traverse follows a path through maps and lists. List items are selected by number, or searched if they are
// maps (salt.utils.data.traverse_dict_and_list).
func traverse(v any, path []string) (any, bool) {
	for _, key := range path {
		if m, ok := payload.Map(v); ok {
			v = m
		}
		switch m := v.(type) {
		case map[string]any:
			x, ok := m[key]
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			n, err := modules.ToInt(key)
			if err == nil && n >= 0 && n < int64(len(m)) {
				v = m[n]
				continue
			}
			found := false
			for _, e := range m {
				if inner, ok := payload.Map(e); ok {
					if x, ok := inner[key]; ok {
						v, found = x, true
						break
					}
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

// testModule declares the runner test (salt/runners/test.py).
func (f funcs) testModule() *modules.Module {
	arguments := func(drop bool) modules.Func {
		return func(_ context.Context, c *modules.Call) (any, error) {
			kwargs := maps.Clone(c.Keywords)
			maps.DeleteFunc(kwargs,
				func(k string, _ any) bool { return drop && strings.HasPrefix(k, "__") })
			if kwargs == nil {
				kwargs = map[string]any{}
			}
			args := c.Extra
			if args == nil {
				args = []any{}
			}
			return map[string]any{"args": args, "kwargs": kwargs}, nil
		}
	}
	return &modules.Module{Name: "test", Doc: "For trying out how runners are called.",
		Funcs: []modules.Def{
			{Name: "arg", Doc: `The arguments as they came, without those that Salt adds.

    salt-run test.arg foo bar=baz`, Args: "args", Kwargs: "kwargs", Run: arguments(true)},
			{Name: "raw_arg", Doc: `All arguments as they came.

    salt-run test.raw_arg foo bar=baz`, Args: "args", Kwargs: "kwargs", Run: arguments(false)},
			{Name: "metasyntactic", Doc: `The names that stand for any name, in the US or the UK.

    salt-run test.metasyntactic locality=uk`, Params: []modules.Param{{Name: "locality", Default: "us"}},
				Run: func(_ context.Context, c *modules.Call) (any, error) {
					switch c.Str("locality") {
					case "us":
						return splitWords("foo bar baz qux quux quuz corge grault garply waldo " +
							"fred " +
							"plugh xyzzy thud"), nil
					case "uk":
						return splitWords("wibble wobble wubble flob"), nil
					}
					return nil, nil
				}},
			{Name: "sleep", Doc: `Wait some seconds.

    salt-run test.sleep 3`, Params: []modules.Param{{Name: "s_time", Default: int64(10)}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
				d, err := c.Seconds("s_time")
				if err != nil {
					return nil, err
				}
				if f.Print != nil {
					f.Print(c.Str("s_time"))
				}
				if err := waitFor(ctx, d); err != nil {
					return nil, err
				}
				return true, nil
			}},
			{Name: "stdout_print", Doc: `Print one text and return another.

    salt-run test.stdout_print`, Run: func(context.Context, *modules.Call) (any, error) {
				if f.Print != nil {
					f.Print("foo")
				}
				return "bar", nil
			}},
			{Name: "stream", Doc: `Report progress for ten seconds.

    salt-run test.stream`, Run: func(ctx context.Context, c *modules.Call) (any, error) {
				for i := int64(1); i < 100; i++ {
					c.Progress(map[string]any{"message": "Runner is " + pytext.Str(i) + "% done"})
					if err := waitFor(ctx, 100*time.Millisecond); err != nil {
						return nil, err
					}
				}
				return true, nil
			}},
			{Name: "get_opts", Doc: `The master's options.

    salt-run test.get_opts`, Run: func(context.Context, *modules.Call) (any, error) { return f.Opts, nil }},
		}}
}

// test.stdout_print absent: runners of this master have no standard output of their own.

// splitWords returns the words of a text as a list.
func splitWords(text string) []any {
	var out []any
	for w := range strings.FieldsSeq(text) {
		out = append(out, w)
	}
	return out
}

// waitFor waits for d, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errorModule declares the runner error (salt/runners/error.py).
func (f funcs) errorModule() *modules.Module {
	return &modules.Module{Name: "error", Doc: "For trying out how errors of runners look.",
		Funcs: []modules.Def{
			{Name: "error", Doc: `Fail with an exception of a name, or do nothing without one.

    salt-run error.error Exception 'this is a test'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "message", Default: ""}},
				Run: func(_ context.Context, c *modules.Call) (any, error) {
					if c.Value("name") == nil {
						return map[string]any{}, nil
					}
					name := c.Str("name")
					return nil, &modules.PythonError{Type: name[strings.LastIndexByte(name, '.')+
						1:],
						Msg: c.Str("message")}
				}},
		}}
}

// docModule declares the runner doc (salt/runners/doc.py).
func (f funcs) docModule() *modules.Module {
	return &modules.Module{Name: "doc", Doc: "Documentation.", Funcs: []modules.Def{
		{Name: "runner", Doc: `The documentation of all runners.

    salt-run doc.runner`, Run: func(context.Context, *modules.Call) (any, error) {
			out := map[string]any{}
			for k, v := range f.client.Docs("") {
				out[k] = v
			}
			return out, nil
		}},
		{Name: "wheel", Doc: `The documentation of all wheel functions.

    salt-run doc.wheel`, Run: func(context.Context, *modules.Call) (any, error) {
			out := map[string]any{}
			for k, v := range NewWheel(f.Host).Docs("") {
				out[k] = v
			}
			return out, nil
		}},
		{Name: "execution", Doc: `The documentation of all execution functions that minions have.

    salt-run doc.execution`, Run: func(ctx context.Context, _ *modules.Call) (any, error) {
			answers, err := f.Command(ctx, host.Job{Tgt: "*", Fun: "sys.doc"})
			if err != nil {
				return nil, err
			}
			out := map[string]any{}
			for _, a := range answers {
				docs, _ := payload.Map(a.Value)
				maps.Copy(out, docs)
			}
			return out, nil
		}},
	}}
}

// matchModule declares the runner match (salt/runners/match.py).
func (f funcs) matchModule() *modules.Module {
	return &modules.Module{Name: "match",
		Doc: "Whom a target means, for minions that ask (peer_run).", Funcs: []modules.Def{
			{Name: "compound_matches", Doc: `Whether a compound expression means a minion: its id, or False. Pillar values are compared literally, and a minion
that the master has no data of is not meant by what is about data.

    salt-run match.compound_matches 'I@foo:bar and G@os:Deb* and not db*' myminion`, Params: []modules.Param{{Name: "expr"}, {Name: "minion_id"}},
				Run: func(_ context.Context, c *modules.Call) (any, error) {
					id, isText := c.Value("minion_id").(string)
					if keep, set := f.Opts["minion_data_cache"]; set && !pytext.Truth(keep) ||
						!isText || f.Match == nil {
						return map[string]any{"res": false}, nil
					}
					ids, err := f.Match(target.TypeCompoundPillarExact, c.Value("expr"))
					if err != nil || !slices.Contains(ids, id) {
						return map[string]any{"res": false}, nil
					}
					return map[string]any{"res": id}, nil
				}},
		}}
}

// networkModule declares the runner network (salt/runners/network.py).
func (f funcs) networkModule() *modules.Module {
	to := []modules.Param{{Name: "bcast", Default: "255.255.255.255"},
		{Name: "destport", Default: int64(9)}}
	send := func(ctx context.Context, c *modules.Call, mac string) error {
		port, err := c.Int("destport")
		if err != nil {
			return err
		}
		err = wol.Send(ctx, mac, c.Str("bcast"), port)
		var python *wol.Error
		switch {
		case errors.As(err, &python):
			return &modules.PythonError{Type: python.Type, Msg: python.Msg}
		case err != nil:
			return modules.OSError(err)
		}
		return nil
	}
	return &modules.Module{Name: "network", Doc: "The master's network.", Funcs: []modules.Def{
		{Name: "wol", Doc: `Wake a host up by a packet to its hardware address.

    salt-run network.wol 08-00-27-13-69-77`, Params: append([]modules.Param{{Name: "mac"}}, to...),
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				err := send(ctx, c, c.Str("mac"))
				return err == nil, err
			}},
		{Name: "wollist", Doc: `Wake up the hosts whose hardware addresses are the lines of a file.

    salt-run network.wollist /path/to/maclist`, Params: append([]modules.Param{{Name: "maclist"}}, to...), Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return f.wakeList(c, func(mac string) error { return send(ctx, c, mac) })
		}},
		{Name: "wolmatch", Doc: `Wake up the minions that a target means, at the addresses that their grains say.

    salt-run network.wolmatch 192.168.0.0/16 tgt_type=ipcidr`, Params: append([]modules.Param{{Name: "tgt"}, {Name: "tgt_type", Default: "glob"}}, to...),
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				return f.wakeMinions(c, func(mac string) error { return send(ctx, c, mac) })
			}},
	}}
}

// wakeList wakes the machines listed in a file. An error is logged, and the answer is empty.
func (f funcs) wakeList(c *modules.Call, wake func(mac string) error) (any, error) {
	text, err := os.ReadFile(c.Str("maclist"))
	woken := []any{}
	for line := range strings.Lines(string(text)) {
		mac := strings.TrimSpace(line)
		if err = wake(mac); err != nil {
			break
		}
		if f.Print != nil {
			f.Print("Waking up " + mac)
		}
		woken = append(woken, mac)
	}
	if err == nil {
		return woken, nil
	}
	if f.Progress != nil {
		_, text := modules.Exception(modules.OSError(err))
		f.Progress(map[string]any{"error": "Failed to open the MAC file. Error: " + text})
	}
	return []any{}, nil
}

// wakeMinions wakes minions by the hardware addresses in their grains.
func (f funcs) wakeMinions(c *modules.Call, wake func(mac string) error) (any, error) {
	ids, err := f.Meant(c)
	if err != nil {
		return nil, err
	}
	woken := []any{}
	known := f.Cache.Reader(ids)
	for _, id := range ids {
		d, ok := known.Ordered(id)
		if !ok {
			continue
		}
		all, _ := d.Grains.Get("hwaddr_interfaces")
		faces, ok := payload.Ordered(all)
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'hwaddr_interfaces'"}
		}
		for _, face := range faces {
			if face.Key == "lo" {
				continue
			}
			mac, _ := face.Value.(string)
			mac = strings.TrimSpace(mac)
			if err := wake(mac); err != nil {
				return nil, err
			}
			woken = append(woken, mac)
		}
	}
	return woken, known.Err()
}
