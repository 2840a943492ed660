// Package manage contains Salt's runners manage and survey: which minions are present, by ping, connection or
// version, and which of them return equal results. Salt's sources: salt/runners/manage.py,
// salt/runners/survey.py.
package manage

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/modules"
)

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Module returns the runner manage.
func Module(h *host.Host) *modules.Module { return funcs{h}.manageModule() }

// Survey returns the runner survey, which groups minions by equal results.
func Survey(h *host.Host) *modules.Module { return funcs{h}.surveyModule() }

// manage.key_regen differs: the master keeps its own key, so that no restart is needed and its peers stay equal.
// manage.bootstrap absent: it installs minions through salt-ssh, which brine does not have.
// manage.bootstrap_psexec absent: as manage.bootstrap.
// manage.safe_accept absent: it asks minions for fingerprints through salt-ssh, which brine does not have.

// manageModule declares the runner manage (salt/runners/manage.py). Six pairs of its functions are aliases for
// lists of connections.
func (f funcs) manageModule() *modules.Module {
	times := []modules.Param{{Name: "timeout", Optional: true},
		{Name: "gather_job_timeout", Optional: true}}
	target := append([]modules.Param{{Name: "tgt", Default: "*"},
		{Name: "tgt_type", Default: "glob"}}, times...)
	m := &modules.Module{Name: "manage", Doc: "Which minions are there.", Funcs: []modules.Def{
		{Name: "status", Doc: `The minions that answer a ping, and those that do not.

output
    Accepted for the sake of Salt's callers.
tgt, tgt_type
    The minions to ask.
timeout, gather_job_timeout
    How long to wait, in seconds.

    salt-run manage.status
    salt-run manage.status tgt='web*' timeout=5`, Params: append([]modules.Param{{Name: "output", Default: true}}, target...),
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				up, down, err := f.pingMinions(ctx, c)
				if err != nil {
					return nil, err
				}
				return map[string]any{"up": nested.Anys(up), "down": nested.Anys(down)}, nil
			}},
		{Name: "up", Doc: `The minions that answer a ping.

    salt-run manage.up`, Params: target, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			up, _, err := f.pingMinions(ctx, c)
			return nested.Anys(up), err
		}},
		{Name: "down", Doc: `The minions that do not answer a ping.

removekeys
    Delete their keys.

    salt-run manage.down
    salt-run manage.down removekeys=True`, Params: append([]modules.Param{{Name: "removekeys", Default: false, Type: modules.Bool}}, target...),
			Run: f.listDown},
		{Name: "versions", Doc: `The minions by how their version compares with the master's.

    salt-run manage.versions`, Run: f.versions},
		{Name: "clones", Doc: `The ids that several hosts use at once with the same key, as copies of one machine's image do, with what these hosts say
of themselves. Salt has no such function.

    salt-run manage.clones`, Run: f.listClones},
		{Name: "key_regen", Doc: `Let all minions make new keys, and delete the keys that the master has.

    salt-run manage.key_regen`, Run: f.keyRegen},
	}}
	subset := []modules.Param{{Name: "subset", Optional: true},
		{Name: "show_ip", Default: false, Type: modules.Bool}}
	add := func(name string, connected bool) {
		doc := "The minions that are connected to the master, as far as it can tell.\n\nsubset\n " +
			"   Only these ids.\nshow_ip\n    With their addresses."
		run := f.listConnected
		if !connected {
			doc, run = "The accepted minions that are not connected to the master.\n\nsubset\n   "+
				" Only these ids.\nshow_ip\n    Accepted for the sake of Salt's callers.",
				f.notConnected
		}
		m.Funcs = append(m.Funcs,
			modules.Def{Name: name, Doc: doc + "\n\n    salt-run manage." + name, Params: subset,
				Run: run})
	}
	for _, name := range []string{"list_state", "present", "joined", "allowed", "alived",
		"reaped"} {
		add(name, true)
		if name == "list_state" {
			name = "state"
			add("list_not_state", false)
			continue
		}
		add("not_"+name, false)
	}
	return m
}

// pingMinions sends test.ping. It returns the minions that answer and those that do not.
func (f funcs) pingMinions(ctx context.Context, c *modules.Call) (up, down []string, err error) {
	j := host.Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: "test.ping"}
	if j.Timeout, err = host.Seconds(c, "timeout"); err != nil {
		return nil, nil, err
	}
	if j.Gather, err = host.Seconds(c, "gather_job_timeout"); err != nil {
		return nil, nil, err
	}
	if f.Match == nil {
		return nil, nil, host.Needs("list of minions")
	}
	expected, err := f.Match(j.TgtType, j.Tgt)
	if err != nil {
		return nil, nil, err
	}
	answers, err := f.Command(ctx, j)
	if err != nil {
		return nil, nil, err
	}
	up = slices.Sorted(maps.Keys(answers))
	for _, id := range expected {
		if _, ok := answers[id]; !ok {
			down = append(down, id)
		}
	}
	slices.Sort(down)
	return up, down, nil
}

// listDown is manage.down, which returns the minions that do not answer. With removekeys it deletes their keys.
// As in Salt, a short timeout therefore also deletes the keys of slow minions.
func (f funcs) listDown(ctx context.Context, c *modules.Call) (any, error) {
	_, down, err := f.pingMinions(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Bool("removekeys") {
		if f.Keys == nil {
			return nil, host.Needs("keys")
		}
		for _, id := range down {
			if err := f.Keys.Delete(id); err != nil {
				return nil, err
			}
		}
	}
	return nested.Anys(down), nil
}

// inSubset reports whether an id is in the caller's subset; without one it returns true.
func inSubset(c *modules.Call) func(string) bool {
	if c.Value("subset") == nil {
		return func(string) bool { return true }
	}
	ids := map[string]bool{}
	for _, id := range c.Strings("subset") {
		ids[id] = true
	}
	return func(id string) bool { return ids[id] }
}

// listConnected returns the connected minions. It sends nothing to them, because the master knows its
// connections.
func (f funcs) listConnected(ctx context.Context, c *modules.Call) (any, error) {
	if f.Connected == nil {
		return nil, host.Needs("list of connections")
	}
	all, err := f.Connected(ctx)
	if err != nil {
		return nil, err
	}
	keep := inSubset(c)
	all = slices.DeleteFunc(all, func(id string) bool { return !keep(id) })
	slices.Sort(all)
	if !c.Bool("show_ip") {
		return nested.Anys(all), nil
	}
	var at map[string]string
	if f.Addresses != nil {
		if at, err = f.Addresses(all); err != nil {
			return nil, err
		}
	}
	out := make(map[string]any, len(all))
	for _, id := range all {
		out[id] = at[id]
	}
	return out, nil
}

// notConnected returns the accepted minions without a connection.
func (f funcs) notConnected(ctx context.Context, c *modules.Call) (any, error) {
	if f.Connected == nil || f.Keys == nil {
		return nil, host.Needs("list of connections")
	}
	there, err := f.Connected(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := f.Keys.List(keys.Accepted)
	if err != nil {
		return nil, err
	}
	keep := inSubset(c)
	here := make(map[string]struct{}, len(there))
	for _, id := range there {
		here[id] = struct{}{}
	}
	out := []any{}
	for _, id := range ids {
		if _, ok := here[id]; !ok && keep(id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// listClones returns the ids that several hosts use at once.
func (f funcs) listClones(ctx context.Context, _ *modules.Call) (any, error) {
	if f.Clones == nil {
		return nil, host.Needs("list of clones")
	}
	return f.Clones(ctx)
}

// versions is manage.versions, which sorts minions by comparing their version with the Salt version that this
// master reports.
func (f funcs) versions(ctx context.Context, _ *modules.Call) (any, error) {
	answers, err := f.Command(ctx, host.Job{Tgt: "*", Fun: "test.version"})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"Master": version.Salt}
	put := func(label, id string, v any) {
		m, _ := out[label].(map[string]any)
		if m == nil {
			m = map[string]any{}
			out[label] = m
		}
		m[id] = v
	}
	for id, a := range answers {
		v, ok := a.Value.(string)
		if !ok || a.Retcode != 0 {
			put("Minion offline", id, false)
			continue
		}
		switch compareVersions(v, version.Salt) {
		case -1:
			put("Minion requires update", id, v)
		case 0:
			put("Up to date", id, v)
		default:
			put("Minion newer than master", id, v)
		}
	}
	return out, nil
}

// compareVersions orders versions of Salt by their numbers.
func compareVersions(a, b string) int {
	number := func(s string) []int {
		var out []int
		for part := range strings.SplitSeq(strings.TrimPrefix(s, "v"), ".") {
			end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
			if end >= 0 {
				part = part[:end]
			}
			n, err := strconv.Atoi(part)
			if err != nil {
				break
			}
			out = append(out, n)
		}
		return out
	}
	return slices.Compare(number(a), number(b))
}

// keyRegen is manage.key_regen, which makes all minions replace their keys, and deletes their keys on the
// master.
func (f funcs) keyRegen(ctx context.Context, _ *modules.Call) (any, error) {
	if f.Keys == nil {
		return nil, host.Needs("keys")
	}
	if _, err := f.Command(ctx, host.Job{Tgt: "*", Fun: "saltutil.regen_keys"}); err != nil {
		return nil, err
	}
	for _, st := range keys.States() {
		ids, err := f.Keys.List(st)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := f.Keys.DeleteState(id, st); err != nil {
				return nil, err
			}
		}
	}
	// Stock also deletes the master's own key and demands a restart within a minute. Here the master keeps its
	// identity.
	return "The minions' keys have been deleted. Once the minions reconnect the new keys " +
		"will\nappear in pending and will need to be " +
		"re-accepted by running:\n    salt-key -A\n\nMinions that are not connected now will not " +
		"be able to reconnect and may require\n" +
		"manual regeneration via a local call to\n    salt-call saltutil.regen_keys", nil
}
