package cfn_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/minion"
	_ "github.com/brine-salt/brine/modules/cmdmod"
	_ "github.com/brine-salt/brine/modules/configmod"
	_ "github.com/brine-salt/brine/modules/cpmod"
	_ "github.com/brine-salt/brine/modules/file"
	_ "github.com/brine-salt/brine/modules/hashutil"
	_ "github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/openstack/cfn"
	_ "github.com/brine-salt/brine/states/cmd"
	_ "github.com/brine-salt/brine/states/file"
)

// call runs a function of the module in a minion without a master.
func call(t *testing.T, fun string, kwargs map[string]any) (any, int) {
	t.Helper()
	m, err := minion.New(minion.Options{Runner: &runcmd.Runner{}, Opts: map[string]any{"id": "guest", "file_client": "local",
		"cachedir": t.TempDir(), "master_type": "disable"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Call(t.Context(), minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true})
	if err != nil {
		t.Fatal(err)
	}
	return res.Return, res.Retcode
}

func TestInitRunsStepsUntilOneFails(t *testing.T) {
	dir := t.TempDir()
	metadata := strings.ReplaceAll(`{"AWS::CloudFormation::Init": {"config": {
		"files": {"DIR/a/text": {"content": "x\r\n", "mode": "000600"}},
		"commands": {"1": {"command": "cat a/text > copy", "cwd": "DIR"}, "2": {"command": "echo why >&2; exit 4", "cwd": "DIR"},
			"3": {"command": "touch never", "cwd": "DIR"}},
		"odd": {}}}}`, "DIR", dir)
	v, code := call(t, "cfn.init", map[string]any{"metadata": metadata, "test": true})
	if m, ok := v.(map[string]any); !ok || code != 0 || m["result"] != true {
		t.Fatalf("test mode: code %d, %v", code, v)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Fatalf("test mode made %v, %v", list, err)
	}
	v, code = call(t, "cfn.init", map[string]any{"metadata": metadata})
	m, ok := v.(map[string]any)
	if !ok || code != 1 || m["result"] != false || m["source"] != "argument" {
		t.Fatalf("code %d, %v", code, v)
	}
	if want := `commands 2: Command "echo why >&2; exit 4" run (exit status 4): why`; m["failed"] != want {
		t.Errorf("failed is %q, want %q", m["failed"], want)
	}
	if w := m["warnings"].([]any); len(w) != 1 || w[0] != "config.odd is not a section that cfn-init knows" {
		t.Errorf("warnings %v", w)
	}
	results := []any{}
	for _, s := range m["steps"].([]any) {
		results = append(results, s.(map[string]any)["result"])
	}
	if want := []any{true, true, true, true, false, false}; !slices.Equal(results, want) {
		t.Errorf("results %v, want %v", results, want)
	}
	for name, want := range map[string]string{"a/text": "x\r\n", "copy": "x\r\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("a step ran after the failure")
	}
	if st, err := os.Stat(filepath.Join(dir, "a/text")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
}

func TestInitRefusesBadMetadata(t *testing.T) {
	v, code := call(t, "cfn.init", map[string]any{"metadata": map[string]any{"AWS::CloudFormation::Init": map[string]any{
		"config": map[string]any{"files": map[string]any{"/x": map[string]any{"content": "", "mode": "rw"}}}}}})
	if text, _ := v.(string); code != 1 || !strings.Contains(text, `config.files./x.mode must be octal digits, not "rw"`) {
		t.Errorf("code %d, %v", code, v)
	}
}

func TestToSLSOfPlainMetadata(t *testing.T) {
	v, _ := call(t, "cfn.to_sls", map[string]any{"metadata": map[string]any{"AWS::CloudFormation::Init": map[string]any{
		"config": map[string]any{"commands": map[string]any{"a": map[string]any{"command": "true"}}}}}})
	const want = "#!yaml\ncfn-0001 commands a:\n  cmd.run:\n  - name: 'true'\n  - shell: /bin/sh\n  - cwd: /\n"
	if v != want {
		t.Errorf("got %q, want %q", v, want)
	}
}
