package xfs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// Several file systems, sessions and media files, which stock Salt cannot read.
func TestInventoryNests(t *testing.T) {
	got, err := readInventory("file system 0:\n\tfs id:\t\ta\n\tsession 0:\n\t\tmount point:\th:/x\n\t\tstream 0:\n\t\t\tmedia file 0:\n\t\t\t\tmfile index:\t0\n" +
		"\t\t\tmedia file 1:\n\t\t\t\tmfile index:\t1\n\tsession 1:\n\t\tsession label:\t\"it's \\ '}\"\nfile system 1:\n\tfs id:\t\tb\nxfsrestore: Restore Status: SUCCESS")
	want := map[string]any{
		"file system 0": map[string]any{
			"fs id": "a",
			"session 0": map[string]any{
				"mount point": "h:/x",
				"stream 0": map[string]any{
					"media file 0": map[string]any{"mfile index": "0"},
					"media file 1": map[string]any{"mfile index": "1"},
				},
			},
			"session 1": map[string]any{"session label": `"it's \ '}"`},
		},
		"file system 1":  map[string]any{"fs id": "b"},
		"restore_status": "xfsrestore: Restore Status: SUCCESS",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, text := range []string{"", "\t\t\tx: y\n\t\t\tz:\n\nend"} { // nothing, and depth without headings
		if _, err := readInventory(text); (err == nil) == (text == "") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
