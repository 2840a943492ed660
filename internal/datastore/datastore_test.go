package datastore

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStore(t *testing.T) {
	path := Path(t.TempDir())
	if got, err := Load(path); err != nil || len(got) != 0 {
		t.Fatalf("a store that is not there: %v, %v", got, err)
	}
	set := func(store map[string]any) bool { store["a"] = []any{int64(1), "x", nil}; return true }
	if err := Change(path, set); err != nil {
		t.Fatal(err)
	}
	if err := Change(path, func(store map[string]any) bool { store["lost"] = true; return false }); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if diff := cmp.Diff(map[string]any{"a": []any{int64(1), "x", nil}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestForeignContent(t *testing.T) {
	path := Path(t.TempDir())
	for _, content := range []string{"\x93\x01\x02", "\xc1", "\xdf\xff\xff\xff\xff"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil {
			t.Errorf("%q is a store", content)
		}
	}
}
