package trove

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Trove's modules are files that an operator attaches to instances. A driver for the module's type applies them. This
// agent has Trove's driver ping.

const (
	contentsFile = "contents.dat"
	resultFile   = "result.json"
	forAll       = "all"
)

// addon is a module of Trove in the form in which it is sent.
type addon struct {
	id, kind, name, tenant, datastore, version string
	contents                                   []byte
	md5                                        any
	autoApply, visible, admin                  bool
	first                                      bool // priority_apply
	order                                      int64
}

func readAddon(m map[string]any, removing bool) (a addon, err error) {
	a = addon{id: textOf(m, "id"), kind: textOf(m, "type"), name: textOf(m, "name"), tenant: cmp.Or(textOf(m, "tenant"), forAll),
		datastore: cmp.Or(textOf(m, "datastore"), forAll), version: cmp.Or(textOf(m, "datastore_version"), forAll), md5: m["md5"]}
	flag := func(key string) bool {
		v, ok := m[key]
		return !ok || pytext.Truth(v)
	}
	a.autoApply, a.visible = flag("auto_apply"), flag("visible")
	a.admin = a.tenant == forAll || !a.visible || a.autoApply
	if v := m["is_admin"]; v != nil {
		a.admin = pytext.Truth(v)
	}
	a.first = pytext.Truth(m["priority_apply"])
	if v := m["apply_order"]; v != nil {
		if a.order, err = modules.ToInt(v); err != nil {
			return a, err
		}
	}
	switch {
	case a.name == "":
		return a, modules.Errorf("Module name not specified")
	case !isFolder(a.id) || !isFolder(a.kind):
		return a, modules.Errorf("cannot keep the module %s: its id or type is not a name", pytext.Repr(a.name))
	case a.kind != "ping":
		return a, modules.Errorf("No driver implemented for module type '%s'", a.kind)
	case removing:
		return a, nil
	case !pytext.Truth(m["contents"]):
		return a, modules.Errorf("Module contents not specified")
	}
	a.contents, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(textOf(m, "contents")), ""))
	if err != nil {
		return a, modules.Errorf("cannot read the contents of the module %s: %v", a.name, err)
	}
	return a, nil
}

func isFolder(s string) bool {
	return s != "" && filepath.IsLocal(s) && !strings.ContainsAny(s, `/\`) && s != "."
}

// addonMap returns the module in the value that Trove sends for it.
func addonMap(v any) (map[string]any, error) {
	outer, _ := v.(map[string]any)
	m, ok := outer["module"].(map[string]any)
	if !ok {
		return nil, modules.Usagef("a module must be a dictionary with the key module")
	}
	return m, nil
}

// applyModules implements module_apply: first modules with priority, then in their order.
func (g *guest) applyModules(_ context.Context, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, modules.Usagef("modules must be a list, not %s", modules.TypeName(v))
	}
	addons := make([]addon, 0, len(list))
	for _, x := range list {
		m, err := addonMap(x)
		if err != nil {
			return nil, err
		}
		a, err := readAddon(m, false)
		if err != nil {
			return nil, err
		}
		if a.datastore != forAll && a.datastore != g.manager {
			return nil, modules.Errorf("The module is invalid: Module not valid for datastore %s", g.manager)
		}
		addons = append(addons, a)
	}
	slices.SortStableFunc(addons, func(a, b addon) int {
		if a.first != b.first {
			return map[bool]int{true: -1, false: 1}[a.first]
		}
		return cmp.Compare(a.order, b.order)
	})
	results := []any{}
	for _, a := range addons {
		r, err := g.applyAddon(a)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (g *guest) addonDir(a addon) string { return path.Join(g.modulesDir, a.kind, a.id) }

func (g *guest) applyAddon(a addon) (map[string]any, error) {
	dir := g.addonDir(a)
	if err := os.MkdirAll(g.c.Path(dir), 0o700); err != nil {
		return nil, modules.Errorf("cannot make the directory %s: %v", dir, err)
	}
	if err := atomicfile.WriteFile(g.c.Path(path.Join(dir, contentsFile)), a.contents, 0o600); err != nil {
		return nil, modules.Errorf("cannot write the module %s: %v", a.name, err)
	}
	now := timestamp(g.c.Now())
	result, err := g.readResult(path.Join(dir, resultFile))
	if missing(err) {
		result, err = map[string]any{"created": now, "contents": nil}, nil
	}
	if err != nil {
		return nil, err
	}
	message, ok := ping(string(a.contents))
	for key, v := range map[string]any{"type": a.kind, "name": a.name, "datastore": a.datastore, "datastore_version": a.version,
		"tenant": a.tenant, "id": a.id, "md5": a.md5, "status": map[bool]string{true: "OK", false: "ERROR"}[ok], "message": message,
		"updated": now, "removed": nil, "auto_apply": a.autoApply, "visible": a.visible, "is_admin": a.admin} {
		result[key] = v
	}
	return result, g.writeResult(path.Join(dir, resultFile), result)
}

// ping is Trove's driver of that name: its message is the value of message in the contents, lines of a key, "=" and a value that ends
// at "#". A truth value is one in the result.
func ping(contents string) (message any, ok bool) {
	message, key := any("Message not found in contents file"), ""
	for line := range strings.Lines(contents) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, has := strings.Cut(line, "=")
		if !has {
			return "Could not extract ping message: not enough values to unpack (expected 2, got 1)", false
		}
		name = strings.TrimSpace(name)
		if ok && name != key || !strings.EqualFold(name, "message") {
			continue
		}
		value, _, _ = strings.Cut(value, "#")
		message, key, ok = value, name, true
		if strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
			message = strings.EqualFold(value, "true")
		}
	}
	return message, ok
}

func (g *guest) readResult(file string) (map[string]any, error) {
	b, err := os.ReadFile(g.c.Path(file))
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(b)
	m, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, modules.Errorf("cannot read %s: it is not what a module leaves", file)
	}
	return m, nil
}

func (g *guest) writeResult(file string, m map[string]any) error {
	b, err := json.Marshal(m)
	if err == nil {
		err = atomicfile.WriteFile(g.c.Path(file), b, 0o600)
	}
	if err != nil {
		return modules.Errorf("cannot write %s: %v", file, err)
	}
	return nil
}

// listModules implements module_list: the last applied module first.
func (g *guest) listModules() (any, error) {
	admin := pytext.Truth(g.req["is_admin"])
	files, err := filepath.Glob(g.c.Path(path.Join(g.modulesDir, "*", "*", resultFile)))
	if err != nil {
		return nil, modules.Errorf("cannot read %s: %v", g.modulesDir, err)
	}
	list := []any{}
	for _, file := range files {
		kind, id := filepath.Base(filepath.Dir(filepath.Dir(file))), filepath.Base(filepath.Dir(file))
		dir := g.addonDir(addon{kind: kind, id: id})
		m, err := g.readResult(path.Join(dir, resultFile))
		if err != nil {
			return nil, err
		}
		if pytext.Truth(m["removed"]) || !admin && !pytext.Truth(m["visible"]) {
			continue
		}
		if g.c.Bool("include_contents") {
			contents := []byte("Must be admin to retrieve contents for module " + textOf(m, "name"))
			if admin || !pytext.Truth(m["is_admin"]) {
				if contents, err = os.ReadFile(g.c.Path(path.Join(dir, contentsFile))); err != nil {
					return nil, modules.Errorf("cannot read the contents of the module %s: %v", textOf(m, "name"), err)
				}
			}
			m["contents"] = base64.StdEncoding.EncodeToString(contents)
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b any) int {
		return cmp.Compare(textOf(b.(map[string]any), "updated"), textOf(a.(map[string]any), "updated"))
	})
	return list, nil
}

// removeModule implements module_remove. The module's data remains on disk, marked as removed.
func (g *guest) removeModule() error {
	m, err := addonMap(g.c.Value("module"))
	if err != nil {
		return err
	}
	a, err := readAddon(m, true)
	if err != nil {
		return err
	}
	file := path.Join(g.addonDir(a), resultFile)
	result, err := g.readResult(file)
	if missing(err) {
		return modules.Errorf("Module '%s' has not been applied", a.name)
	}
	if err != nil {
		return err
	}
	result["removed"] = timestamp(g.c.Now())
	return g.writeResult(file, result)
}
