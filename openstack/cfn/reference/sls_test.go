//go:build openstack

package reference

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestToSLSHasEqualEffect applies the output of cfn.to_sls with state.apply instead of cfn.init.
func TestToSLSHasEqualEffect(t *testing.T) {
	needs(t)
	server := serveFiles(t)
	for _, name := range []string{"files-plain", "files-exact-content", "files-map", "files-base64", "files-symlink", "users", "users-own-group",
		"commands-env", "commands-test", "commands-ignore-errors", "configsets-nested", "sources-archives", "services-triggers", "blog"} {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob("testdata/templates/*-" + name + ".json")
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			tpl := readTemplate(t, files[0], server.URL)
			setup := tpl.prepare(server.URL)
			direct := runIn(t, setup, "cfn-init", nil, true)
			const apply = "cd /; mkdir -p /srv/salt; /run/heat-minion call --local --out=newline_values_only cfn.to_sls > /srv/salt/web.sls && " +
				"head -1 /srv/salt/web.sls | grep -qx '#!yaml' && exec /run/heat-minion call --local --retcode-passthrough state.apply web"
			bySLS := runIn(t, setup, "salt-call", []string{"/bin/sh", "-c", apply}, false)
			if direct.Exit != 0 || bySLS.Exit != 0 {
				t.Fatalf("exit codes %d and %d\n%s\n%s%s", direct.Exit, bySLS.Exit, direct.Output, bySLS.Stdout, bySLS.Output)
			}
			paths := maps.Clone(direct.Files)
			maps.Copy(paths, bySLS.Files)
			for _, path := range slices.Sorted(maps.Keys(paths)) {
				if under(path, append(append([]string{"/srv/salt"}, tpl.Ignore...), noise...)) || strings.HasPrefix(path, "/srv/repo") {
					continue
				}
				if direct.Files[path] != bySLS.Files[path] {
					t.Errorf("%s\ncfn.init    %q\nstate.apply %q", path, direct.Files[path], bySLS.Files[path])
				}
			}
		})
	}
}
