package version

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShortNames(t *testing.T) {
	got := shortNames([]string{"github.com/vmihailenco/msgpack/v5", "gopkg.in/yaml.v3", "golang.org/x/sys", "github.com/a/go.v", "v5", "github.com/b/json", "example.org/json/v2", "github.com/c/vector"})
	if d := cmp.Diff([]string{"msgpack", "yaml", "sys", "go.v", "v5", "github.com/b/json", "example.org/json/v2", "vector"}, got); d != "" {
		t.Error(d)
	}
}
