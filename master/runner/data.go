package runner

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// cache.cloud absent: it reads the cache of salt-cloud, which brine does not have.
// cache.clear_git_lock differs: there are locks of the file server's repositories only, each of one kind.

func (f funcs) cache() *modules.Module {
	tgt := []modules.Param{{Name: "tgt", Optional: true}, {Name: "tgt_type", Default: "glob"}}
	m := &modules.Module{Name: "cache", Doc: "What the master remembers of minions, and data that others keep with it.", Funcs: []modules.Def{
		{Name: "grains", Doc: `The grains of minions as the master last saw them.

    salt-run cache.grains '*'`, Params: []modules.Param{{Name: "tgt"}, {Name: "tgt_type", Default: "glob"}}, Kwargs: "kwargs",
			Run: f.cached(func(d cache.Data) any { return data(d.Grains) })},
		{Name: "pillar", Doc: `The pillar of minions as the master last made it.

    salt-run cache.pillar '*'`, Params: tgt, Kwargs: "kwargs", Run: f.cached(func(d cache.Data) any { return data(d.Pillar) })},
		{Name: "mine", Doc: `The mine data of minions.

    salt-run cache.mine '*'`, Params: tgt, Kwargs: "kwargs", Run: f.cachedMine},
		{Name: "store", Doc: `Keep data under a key of a bank.

bank
    A path of names, such as mycache/hosts.
cachedir
    Another directory than the master's.

    salt-run cache.store mycache mykey 'some data'`, Params: []modules.Param{{Name: "bank"}, {Name: "key"}, {Name: "data"},
			{Name: "cachedir", Optional: true}}, Run: f.bankStore},
		{Name: "list", Python: "list_", Doc: `The keys of a bank.

    salt-run cache.list mycache`, Params: []modules.Param{{Name: "bank"}, {Name: "cachedir", Optional: true}}, Run: f.bankList},
		{Name: "fetch", Doc: `The data under a key of a bank, empty when there is none.

    salt-run cache.fetch mycache mykey`, Params: []modules.Param{{Name: "bank"}, {Name: "key"}, {Name: "cachedir", Optional: true}}, Run: f.bankFetch},
		{Name: "flush", Doc: `Forget a key of a bank, or the whole bank.

    salt-run cache.flush mycache mykey`, Params: []modules.Param{{Name: "bank"}, {Name: "key", Optional: true}, {Name: "cachedir", Optional: true}},
			Run: f.bankFlush},
	}}
	for name, what := range map[string]string{"clear_pillar": "pillar", "clear_grains": "grains", "clear_mine": "mine", "clear_all": "data"} {
		m.Funcs = append(m.Funcs, modules.Def{Name: name, Doc: "Forget the cached " + what + " of minions.\n\n    salt-run cache." + name + " '*'",
			Params: tgt, Run: f.clear(name)})
	}
	m.Funcs = append(m.Funcs, modules.Def{Name: "clear_git_lock", Doc: `Remove locks that keep git repositories from being updated.

role
    Whose they are: gitfs. Repositories of pillars (git_pillar) and of packages (winrepo) have none here.
remote
    A glob of addresses; all without it.
type
    Kinds of locks, of which there is one here: update.

    salt-run cache.clear_git_lock gitfs
    salt-run cache.clear_git_lock gitfs remote='*states*'`,
		Params: []modules.Param{{Name: "role"}, {Name: "remote", Optional: true}}, Kwargs: "kwargs", Run: f.clearGitLock})
	m.Funcs = append(m.Funcs, modules.Def{Name: "clear_mine_func", Doc: `Forget one function of the mine of minions.

    salt-run cache.clear_mine_func '*' clear_mine_func_flag='network.interfaces'`,
		Params: append(slices.Clone(tgt), modules.Param{Name: "clear_mine_func_flag", Optional: true}), Run: f.clear("clear_mine_func")})
	return m
}

// data is a map that is never nil.
func data(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// meant are the minions of a target; none stands for all, as in Salt.
func (f funcs) meant(c *modules.Call) ([]string, error) {
	if f.Match == nil || f.Cache == nil {
		return nil, errNeeds("cache of minions")
	}
	tgt := c.Value("tgt")
	if tgt == nil {
		tgt = "*"
	}
	return f.Match(c.Str("tgt_type"), tgt)
}

func (f funcs) cached(part func(cache.Data) any) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		ids, err := f.meant(c)
		if err != nil {
			return nil, err
		}
		out := make(map[string]any, len(ids))
		for _, id := range ids {
			if d, ok := f.Cache.Data(id); ok {
				out[id] = part(d)
			}
		}
		return out, nil
	}
}

func (f funcs) cachedMine(_ context.Context, c *modules.Call) (any, error) {
	ids, err := f.meant(c)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(ids))
	for _, id := range ids {
		m := f.Cache.Mine(id)
		if m == nil {
			m = map[string]any{}
		}
		out[id] = m
	}
	return out, nil
}

func (f funcs) clear(name string) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		if c.Value("tgt") == nil {
			return false, nil
		}
		ids, err := f.meant(c)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := f.forget(name, id, text(c, "clear_mine_func_flag")); err != nil {
				return nil, err
			}
		}
		return len(ids) > 0, nil
	}
}

func (f funcs) clearGitLock(_ context.Context, c *modules.Call) (any, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Keywords)) {
		if name != "type" && !strings.HasPrefix(name, "__") {
			return nil, modules.Usagef("The following keyword arguments are not valid: %s=%s", name, pytext.Str(c.Keywords[name]))
		}
	}
	switch role := c.Str("role"); role {
	case "gitfs", "git_pillar", "winrepo":
		out := map[string]any{}
		for _, b := range f.backendsOf(role) {
			done, failed := b.Unlock(text(c, "remote"))
			if len(done) > 0 {
				out["cleared"] = nested.Anys(done)
			}
			if len(failed) > 0 {
				out["errors"] = nested.Anys(failed)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
		return "No locks were removed", nil
	default:
		return nil, modules.Usagef("Invalid role '%s'", role)
	}
}

// backendsOf are the file server's repositories, for the role gitfs.
func (f funcs) backendsOf(role string) []fileserver.Source {
	var out []fileserver.Source
	if f.Files == nil || role != "gitfs" {
		return nil
	}
	for _, b := range f.Files.Backends() {
		if s, ok := b.(fileserver.Source); ok && b.Name() == "git" {
			out = append(out, s)
		}
	}
	return out
}

func (f funcs) forget(name, id, fun string) error {
	d, known := f.Cache.Data(id)
	switch name {
	case "clear_pillar":
		d.Pillar = nil
	case "clear_grains":
		d.Grains = nil
	case "clear_all":
		d = cache.Data{}
	}
	if known && !strings.HasPrefix(name, "clear_mine") {
		if err := f.Cache.Store(id, d); err != nil {
			return err
		}
	}
	switch name {
	case "clear_mine", "clear_all":
		return f.Cache.ChangeMine(id, func(m map[string]any) bool { clear(m); return true })
	case "clear_mine_func":
		return f.Cache.ChangeMine(id, func(m map[string]any) bool {
			_, had := m[fun]
			delete(m, fun)
			return had
		})
	}
	return nil
}

// bank is the directory of a bank (salt/cache/localfs.py), which must not lead out of the cache.
func (f funcs) bank(c *modules.Call) (string, error) {
	dir := text(c, "cachedir")
	if dir == "" {
		dir = f.CacheDir
	}
	if dir == "" {
		return "", errNeeds("cache directory")
	}
	bank := filepath.FromSlash(c.Str("bank"))
	if bank == "" || !filepath.IsLocal(bank) {
		return "", modules.Errorf("cannot use the bank %q: it is not below the cache directory", c.Str("bank"))
	}
	return filepath.Join(dir, bank), nil
}

// bankKey is the file of a key.
func (f funcs) bankKey(c *modules.Call) (string, error) {
	dir, err := f.bank(c)
	if err != nil {
		return "", err
	}
	key := c.Str("key")
	if key == "" || key != filepath.Base(key) || !filepath.IsLocal(key) || strings.ContainsRune(key, 0) {
		return "", modules.Errorf("cannot use the key %q: it is no name", key)
	}
	return filepath.Join(dir, key+".p"), nil
}

func (f funcs) bankStore(_ context.Context, c *modules.Call) (any, error) {
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	b, err := payload.Marshal(c.Value("data"))
	if err != nil {
		return nil, modules.Errorf("cannot store %s: %s", c.Str("key"), err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, modules.OSError(err)
	}
	if err := atomicfile.WriteFile(file, b, 0o600); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, nil
}

func (f funcs) bankList(_ context.Context, c *modules.Call) (any, error) {
	dir, err := f.bank(c)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []any{}, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	out := []any{}
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".p"))
	}
	return out, nil
}

// maxBank bounds one value of a bank.
const maxBank = 64 << 20

func (f funcs) bankFetch(_ context.Context, c *modules.Call) (any, error) {
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err == nil && info.Size() > maxBank {
		return nil, modules.Errorf("cannot fetch %s: it has more than %d bytes", c.Str("key"), maxBank)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, modules.OSError(err)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{Bytes: maxBank})
	if err != nil {
		return nil, modules.Errorf("cannot fetch %s: %s", c.Str("key"), err)
	}
	return v, nil
}

func (f funcs) bankFlush(_ context.Context, c *modules.Call) (any, error) {
	if c.Value("key") == nil {
		dir, err := f.bank(c)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			return false, nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, modules.OSError(err)
		}
		return true, nil
	}
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	err = os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}

func (f funcs) pillar() *modules.Module {
	return &modules.Module{Name: "pillar", Doc: "The pillar that minions get.", Funcs: []modules.Def{
		{Name: "show_pillar", Doc: `The pillar of a minion, compiled now.

minion
    A minion's id. Further keyword arguments are grains, but for saltenv and pillarenv.

    salt-run pillar.show_pillar web1
    salt-run pillar.show_pillar web1 pillarenv=dev os=Debian`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.showPillar},
		{Name: "show_top", Doc: `The top files of the pillar, merged, or what is wrong with them.

minion
    A minion's id, whose grains templates see.

    salt-run pillar.show_top
    salt-run pillar.show_top web1 saltenv=dev`, Params: []modules.Param{{Name: "minion", Optional: true}, {Name: "saltenv", Default: "base"}}, Run: f.showTop},
		{Name: "clear_pillar_cache", Doc: `Forget the pillars that the master keeps for a time (pillar_cache). The answer is what is left of them: nothing, or False if the
master keeps none. With pillar_cache_backend: memory they are the running master's, and salt-run does not reach them.

minion
    Which minions, as a glob.

    salt-run pillar.clear_pillar_cache 'web*'`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.clearPillars},
		{Name: "show_pillar_cache", Doc: `The pillars that the master keeps for a time (pillar_cache), by minion, and those that are too old to be given as well; False if the
master keeps none. With pillar_cache_backend: memory they are the running master's, and salt-run does not see them.

minion
    Which minions, as a glob. A keyword argument pillarenv names the environment.

    salt-run pillar.show_pillar_cache web1`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.keptPillars},
	}}
}

// kept lists the minions that are meant, and the environment.
func (f funcs) kept(c *modules.Call) (ids []string, pillarenv string, err error) {
	if f.Match != nil {
		ids, err = f.Match("glob", c.Str("minion"))
	}
	if env := c.Keywords["pillarenv"]; env != nil {
		pillarenv = pytext.Str(env)
	}
	return ids, pillarenv, err
}

func (f funcs) keptPillars(_ context.Context, c *modules.Call) (any, error) {
	if f.KeptPillars == nil {
		return false, nil
	}
	ids, pillarenv, err := f.kept(c)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, id := range ids {
		if p, ok := f.KeptPillars.Shown(id, pillarenv); ok {
			out[id] = p
		}
	}
	return out, nil
}

func (f funcs) clearPillars(_ context.Context, c *modules.Call) (any, error) {
	if f.KeptPillars == nil {
		return false, nil
	}
	ids, _, err := f.kept(c)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := f.KeptPillars.Clear(id); err != nil {
			return nil, modules.Errorf("cannot forget the pillar of %s: %s", id, err)
		}
	}
	return map[string]any{}, nil
}

func (f funcs) showTop(ctx context.Context, c *modules.Call) (any, error) {
	if f.PillarTop == nil {
		return map[string]any{}, nil
	}
	r := pillar.Request{ID: text(c, "minion"), Saltenv: c.Str("saltenv"), Grains: map[string]any{}}
	if f.Cache != nil && r.ID != "" {
		if d, ok := f.Cache.Data(r.ID); ok && d.Grains != nil {
			r.Grains = maps.Clone(d.Grains)
		}
	}
	top, errs, err := f.PillarTop(ctx, r)
	if err != nil || len(errs) == 0 {
		return top, err
	}
	c.Progress(map[string]any{"data": nested.Anys(errs), "outputter": "nested"})
	return nested.Anys(errs), nil
}

func (f funcs) showPillar(ctx context.Context, c *modules.Call) (any, error) {
	if f.Pillar == nil {
		return map[string]any{}, nil
	}
	id := c.Str("minion")
	r := pillar.Request{ID: id, Grains: map[string]any{"fqdn": id}, Saltenv: "base"}
	if f.Match != nil && f.Cache != nil {
		// Salt takes the first minion that the name means as a glob.
		ids, err := f.Match("glob", id)
		if err == nil && len(ids) > 0 {
			if d, ok := f.Cache.Data(ids[0]); ok && len(d.Grains) > 0 {
				r.ID, r.Grains = ids[0], maps.Clone(d.Grains)
			}
		}
	}
	for name, v := range c.Keywords {
		switch {
		case strings.HasPrefix(name, "__"):
		case name == "saltenv":
			r.Saltenv = pytext.Str(v)
		case name == "pillarenv":
			r.Pillarenv = pytext.Str(v)
		default:
			r.Grains[name] = v
		}
	}
	return f.Pillar(ctx, r)
}

func (f funcs) mine() *modules.Module {
	return &modules.Module{Name: "mine", Doc: "The mine: what minions publish for others.", Funcs: []modules.Def{
		{Name: "get", Doc: `The mine data of minions for functions.

tgt, tgt_type
    The minions.
fun
    A function, or several with commas between or as a list; then the answer is by function.

    salt-run mine.get '*' network.interfaces`, Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "tgt_type", Default: "glob"}}, Run: f.mineGet},
		{Name: "update", Doc: `Let minions send their mine data now.

    salt-run mine.update '*'`, Params: []modules.Param{{Name: "tgt"}, {Name: "tgt_type", Default: "glob"}, {Name: "clear", Default: false, Type: modules.Bool},
			{Name: "mine_functions", Optional: true}}, Run: f.mineUpdate},
	}}
}

func (f funcs) mineGet(_ context.Context, c *modules.Call) (any, error) {
	ids, err := f.meant(c)
	if err != nil {
		return nil, err
	}
	var names []string
	if s, ok := c.Value("fun").(string); ok {
		names = splitInput(s)
	} else {
		names = c.Strings("fun")
	}
	byFun := map[string]any{}
	for _, fun := range names {
		of := map[string]any{}
		for _, id := range ids {
			if v, ok := f.Cache.Mine(id)[fun]; ok {
				of[id] = mineValue(v)
			}
		}
		if len(of) > 0 {
			byFun[fun] = of
		}
	}
	if len(names) == 1 {
		if s, ok := c.Value("fun").(string); ok {
			if v, ok := byFun[s]; ok {
				return v, nil
			}
			return map[string]any{}, nil
		}
	}
	return byFun, nil
}

// mineValue takes a value out of the wrapping that carries its access rules (salt.utils.mine.MINE_ITEM_ACL_DATA).
func mineValue(v any) any {
	if m, ok := v.(map[string]any); ok {
		if _, wrapped := m["__data__"]; wrapped {
			if inner, ok := m["__data__"]; ok {
				return inner
			}
		}
	}
	return v
}

func (f funcs) mineUpdate(ctx context.Context, c *modules.Call) (any, error) {
	return f.values(ctx, Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: "mine.update",
		Kwargs: map[string]any{"clear": c.Value("clear"), "mine_functions": c.Value("mine_functions")}})
}

// values runs a job and gives what each minion returned.
func (f funcs) values(ctx context.Context, j Job) (any, error) {
	answers, err := f.command(ctx, j)
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

func (f funcs) salt() *modules.Module {
	m := &modules.Module{Name: "salt", Doc: "Execution functions, from the master.", Funcs: []modules.Def{
		{Name: "execute", Doc: `Run a function on minions and return what they return.

tgt, fun, arg, kwarg, tgt_type, ret, jid
    As for the program salt.
timeout
    How long to wait, in seconds.

    salt-run salt.execute '*' cmd.run arg='["uptime"]'`, Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Default: []any{}},
			{Name: "timeout", Optional: true}, {Name: "tgt_type", Default: "glob"}, {Name: "ret", Default: ""}, {Name: "jid", Default: ""},
			{Name: "kwarg", Optional: true}}, Kwargs: "kwargs", Run: f.execute},
	}}
	if f.Exec != nil {
		m.Funcs = append(m.Funcs, modules.Def{Name: "cmd", Doc: `Run an execution function on the master's host.

fun
    The function. Further arguments are its own; with_pillar is not among them, the master has no pillar of its own here.

    salt-run salt.cmd test.ping`, Params: []modules.Param{{Name: "fun"}}, Args: "args", Kwargs: "kwargs", Run: f.cmdHere})
	}
	return m
}

// cmdHere is the runner salt.cmd.
func (f funcs) cmdHere(ctx context.Context, c *modules.Call) (any, error) {
	kw := map[string]any{}
	for k := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = c.KeywordInOrder(k)
		}
	}
	v, err := f.Exec(ctx, modules.Request{Fun: c.Str("fun"), JID: c.JID, Args: c.Extra, Kwargs: kw})
	var absent *modules.NotAvailableError
	if errors.As(err, &absent) && absent.Fun == c.Str("fun") {
		return "'" + c.Str("fun") + "' is not available.", nil
	}
	return v, err
}

func (f funcs) execute(ctx context.Context, c *modules.Call) (any, error) {
	j := Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: c.Str("fun"), Ret: c.Str("ret"), JID: c.Str("jid")}
	if j.JID != "" && !protocol.ValidJID(j.JID) {
		return nil, modules.Usagef("jid %q is not a job id", j.JID)
	}
	if err := j.take(c); err != nil {
		return nil, err
	}
	return f.values(ctx, j)
}

// take sets what a call says of the arguments and the timeout of a job.
func (j *Job) take(c *modules.Call) (err error) {
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
	j.Timeout, err = seconds(c, "timeout")
	return err
}
