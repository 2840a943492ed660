//go:build interop

package interop

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinksOutsideTheRoots applies file.recurse with keep_symlinks on a stock minion, under a stock master and under
// brine's. The tree has links to files and directories inside and outside the file roots. The master either follows
// links or does not.
func TestLinksOutsideTheRoots(t *testing.T) {
	for _, follow := range []string{"True", "False"} {
		t.Run("followsymlinks="+follow, func(t *testing.T) {
			t.Setenv("PYTHONHASHSEED", "0") // file.recurse iterates over sets
			place := tempDir(t)
			write(t, place+"/elsewhere/dir/c.txt", "c\n")
			write(t, place+"/elsewhere/file", "e\n")
			if err := os.Mkdir(place+"/elsewhere/empty", 0o755); err != nil {
				t.Fatal(err)
			}
			answers := map[string]any{}
			for _, who := range []string{"stock", "ours"} {
				s := newSite(t, "zeromq", "auto_accept: True\nfileserver_followsymlinks: "+follow+"\n")
				linkTree(t, s, place)
				if who == "stock" {
					(&stockMaster{site: s, t: t, root: t, line: "3007"}).up()
				} else {
					(&ourMaster{site: s, t: t, root: t, line: "3007"}).up()
				}
				answers[who] = applyLinks(t, s, place)
			}
			if d := cmp.Diff(answers["stock"], answers["ours"]); d != "" {
				t.Errorf("under a stock master (-) and ours (+):\n%s", d)
			}
		})
	}
}

// linkTree writes the tree with links, and states that copy it.
func linkTree(t *testing.T, s *site, place string) {
	t.Helper()
	write(t, s.dir+"/srv/t/a.txt", "a\n")
	write(t, s.dir+"/srv/t/d/b.txt", "b\n")
	up := "../../../" + filepath.Base(place)
	for name, to := range map[string]string{
		"filein": "a.txt", "dirin": "d", "d/up": "../a.txt", "dead": "nothing", "deadout": "/nowhere/at/all",
		"fileout": place + "/elsewhere/file", "dirout": place + "/elsewhere/dir", "emptyout": place + "/elsewhere/empty",
		"relout": up + "/elsewhere/dir", "d/out": "../" + up + "/elsewhere/dir",
	} {
		if err := os.Symlink(to, s.dir+"/srv/t/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for name, more := range map[string]string{
		"kept": "", "empty": "    - include_empty: True\n", "clean": "    - clean: True\n", "forced": "    - force_symlinks: True\n",
	} {
		write(t, s.dir+"/srv/"+name+".sls", "copy:\n  file.recurse:\n    - name: "+place+"/out/"+name+
			"\n    - source: salt://t\n    - keep_symlinks: True\n"+more)
	}
}

// applyLinks returns the results of a stock salt-call under the site's master, and the trees that its states created.
func applyLinks(t *testing.T, s *site, place string) any {
	t.Helper()
	conf := s.minion(t, "m", "")
	var all []any
	for _, call := range [][]string{
		{"cp.list_master", "prefix=t"}, {"cp.list_master_dirs", "prefix=t"}, {"cp.list_master_symlinks", "prefix=t"},
		{"state.apply", "kept", "test=True"}, {"state.apply", "kept"}, {"state.apply", "kept"},
		{"state.apply", "empty"}, {"state.apply", "clean"}, {"state.apply", "clean"}, {"state.apply", "forced"},
	} {
		text, _ := output(t, stock(t, "3007", "salt-call"), append([]string{"-c", conf, "--out=json", "-l", "quiet"}, call...)...)
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("salt-call %q printed %q", call, text)
		}
		all = append(all, map[string]any{strings.Join(call, " "): sortedComments(comparable(v))})
	}
	made := map[string]string{}
	err := filepath.WalkDir(place+"/out", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to, _ := os.Readlink(name)
		made[name] = e.Type().String() + to
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(place + "/out"); err != nil {
		t.Fatal(err)
	}
	return append(all, made)
}

// sortedComments sorts the parts of the states' comments. Stock's order is that of a set, which differs between
// processes.
func sortedComments(v any) any {
	minion, _ := v.(map[string]any)
	states, _ := minion["local"].(map[string]any)
	for _, state := range states {
		if s, ok := state.(map[string]any); ok {
			comment, _ := s["comment"].(string)
			parts := strings.Split(comment, "\n\n")
			slices.Sort(parts)
			s["comment"] = parts
		}
	}
	return v
}
