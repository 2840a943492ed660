package mount

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, Module) }

// A mounter is the execution module "mount" of a host with these mounts and this fstab. It writes down what it is asked to change.
type mounter struct {
	active, fstab map[string]any
	busy          bool // only a lazy unmount succeeds
	asked         []string
}

func (m *mounter) module() *modules.Module {
	def := func(name string, answer func(c *modules.Call) any) modules.Def {
		return modules.Def{Name: name, Args: "args", Kwargs: "kwargs", Run: func(_ context.Context, c *modules.Call) (any, error) {
			return answer(c), nil
		}}
	}
	change := func(name string, answer func(c *modules.Call) any) modules.Def {
		return def(name, func(c *modules.Call) any {
			words := []string{name}
			for _, x := range c.Extra {
				words = append(words, fmt.Sprint(x))
			}
			for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
				if v := c.Keywords[k]; !strings.HasPrefix(k, "__") && v != nil {
					words = append(words, fmt.Sprint(k, "=", v))
				}
			}
			m.asked = append(m.asked, strings.Join(words, " "))
			return answer(c)
		})
	}
	yes := func(*modules.Call) any { return true }
	return &modules.Module{Name: "mount", Funcs: []modules.Def{
		def("active", func(*modules.Call) any { return nested.Copy(m.active) }),
		def("fstab", func(*modules.Call) any { return m.fstab }),
		def("read_mount_cache", func(*modules.Call) any { return map[string]any{} }),
		change("umount", func(c *modules.Call) any {
			if m.busy && c.Keywords["lazy"] != true {
				return "target is busy"
			}
			delete(m.active, fmt.Sprint(c.Extra[0]))
			return true
		}),
		change("mount", func(c *modules.Call) any {
			m.active[fmt.Sprint(c.Extra[0])] = map[string]any{"device": c.Extra[1], "opts": []any{"rw"}}
			return true
		}),
		change("remount", yes), change("rm_fstab", yes), change("delete_mount_cache", yes), change("write_mount_cache", yes),
		change("set_fstab", func(*modules.Call) any { return "new" }),
	}}
}

// TestMounts compares results and what is asked of the execution module, with mounts that no test may make.
func TestMounts(t *testing.T) {
	for _, c := range []struct {
		name, fun     string
		kwargs        map[string]any
		active, fstab map[string]any
		busy, test    bool
		result        any
		comment       string
		changes       map[string]any
		asked         []string
	}{
		{name: "not mounted", fun: "unmounted", kwargs: map[string]any{"name": "/a"},
			result: true, comment: "Target was already unmounted", changes: map[string]any{}},
		{name: "mounted", fun: "unmounted", kwargs: map[string]any{"name": "/a"}, active: map[string]any{"/a": map[string]any{"device": "x"}},
			result: true, comment: "Target was successfully unmounted", changes: map[string]any{"umount": true},
			asked: []string{"umount /a", "delete_mount_cache /a"}},
		{name: "mounted, test", fun: "unmounted", kwargs: map[string]any{"name": "/a"}, active: map[string]any{"/a": map[string]any{"device": "x"}},
			test: true, comment: "Mount point /a is mounted but should not be", changes: map[string]any{}},
		{name: "busy", fun: "unmounted", kwargs: map[string]any{"name": "/a", "device": "x"}, busy: true,
			active: map[string]any{"/a": map[string]any{"device": "x"}},
			result: false, comment: "target is busy", changes: map[string]any{}, asked: []string{"umount /a x", "delete_mount_cache /a"}},
		{name: "kept in fstab", fun: "unmounted", kwargs: map[string]any{"name": "/a", "persist": true},
			fstab:  map[string]any{"/a": map[string]any{"device": "x"}},
			result: true, comment: "Target was already unmounted. Removed target from fstab", changes: map[string]any{"persist": "purged"},
			asked: []string{"rm_fstab /a <nil> /etc/fstab"}},
		{name: "another device in fstab", fun: "unmounted", kwargs: map[string]any{"name": "/a", "persist": true, "device": "y"},
			fstab:  map[string]any{"/a": map[string]any{"device": "x"}},
			result: true, comment: "Target was already unmounted. fstab entry for device y not found", changes: map[string]any{}},
		{name: "another device is mounted", fun: "mounted", kwargs: map[string]any{"name": "/a", "device": "new:/x", "fstype": "nfs", "persist": false},
			active: map[string]any{"/a": map[string]any{"device": "old:/x", "opts": []any{"rw"}}},
			result: true, comment: "Target was successfully mounted",
			changes: map[string]any{"mount": true, "umount": "Forced unmount because devices don't match. Wanted: new:/x, current: old:/x, /old:/x"},
			asked:   []string{"umount /a", "mount /a new:/x false nfs [defaults]"}},
		{name: "options of nfs, busy", fun: "mounted", busy: true,
			kwargs: map[string]any{"name": "/a", "device": "h:/x", "fstype": "nfs", "opts": []any{"ro"}, "persist": false},
			active: map[string]any{"/a": map[string]any{"device": "h:/x", "opts": []any{"rw"}, "superopts": []any{}}},
			result: true, comment: "Target was already mounted",
			changes: map[string]any{"umount": "Forced a lazy unmount and mount because the previous unmount failed and because the options (ro) changed"},
			asked:   []string{"umount /a", "umount /a lazy=true", "mount /a h:/x fstype=nfs mkmnt=false opts=[ro]"}},
		{name: "bound", fun: "mounted", kwargs: map[string]any{"name": "/b", "device": "/data/x", "fstype": "none", "opts": []any{"bind"}},
			active: map[string]any{"/b": map[string]any{"device": "/dev/vg/data", "opts": []any{"rw"}, "superopts": []any{}},
				"/data": map[string]any{"device": "/dev/vg/data", "opts": []any{"rw"}, "superopts": []any{}}},
			result: true, comment: "Target was already mounted. Added new entry to the fstab.", changes: map[string]any{"persist": "new"},
			asked: []string{"set_fstab /b /data/x none [bind rw] 0 0 /etc/fstab match_on=auto",
				"write_mount_cache /b /data/x fstype=none mkmnt=false mount_opts=[bind rw]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &mounter{active: c.active, fstab: c.fstab, busy: c.busy}
			e := modulestest.Env(t)
			if err := os.Mkdir(filepath.Join(e.Root, "a"), 0o755); err != nil {
				t.Fatal(err)
			}
			got := statestest.Apply(t, e, Module, "mount."+c.fun, c.kwargs, c.test, m.module())
			want := map[string]any{"result": c.result, "comment": c.comment, "changes": c.changes}
			seen := map[string]any{"result": got["result"], "comment": got["comment"], "changes": got["changes"]}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.asked, m.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}
