//go:build interop && unix

package execplugin

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
)

// TestStockPythonModules runs execution modules of stock Salt in our Python host, with Salt's library and with our stand-ins for it,
// and compares with salt-call.
func TestStockPythonModules(t *testing.T) {
	venv := os.Getenv("BRINE_SALT_3007")
	if venv == "" {
		prereq.Missing(t, "stock Salt (BRINE_SALT_3007)")
	}
	found, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages/salt/modules"))
	if err != nil || len(found) != 1 {
		t.Fatalf("no modules of Salt in %s: %v", venv, err)
	}
	stock := found[0]
	names := []string{"hosts", "alternatives", "ini_manage", "logrotate", "xml", "cron", "pyenv", "dig", "hashutil", "random_org", "data", "slsutil", "jinja", "dnsutil"}
	files := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(stock, name+".py"))
		if err != nil {
			t.Fatal(err)
		}
		files[name+".py"] = string(b)
	}
	conf := t.TempDir()
	sample := filepath.Join(conf, "sample.ini")
	for path, text := range map[string]string{
		filepath.Join(conf, "minion"): "id: web1\nfile_client: local\nroot_dir: " + conf + "\n",
		sample:                        "[a]\nx = 1\ny = two\n",
		filepath.Join(conf, "a.xml"):  "<a><b c='1'>text</b></a>",
		filepath.Join(conf, "hosts"):  "127.0.0.1 localhost\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	calls := [][]string{
		{"hosts.list_hosts"}, {"hosts.has_pair", "127.0.0.1", "localhost"}, {"alternatives.show_current", "no-such-link"},
		{"ini.get_option", sample, "a", "x"}, {"ini.get_section", sample, "a"}, {"ini.get_section", sample, "none"}, {"ini.get_option"},
		{"xml.get_value", filepath.Join(conf, "a.xml"), ".//b"}, {"xml.get_attribute", filepath.Join(conf, "a.xml"), ".//b"},
		{"hashutil.sha256_digest", "get salted"}, {"hashutil.base64_b64encode", "get salted"}, {"dnsutil.parse_hosts", filepath.Join(conf, "hosts")},
		{"sys.argspec", "ini.set_option"}, {"sys.argspec", "hosts.add_host"}, {"sys.doc", "xml.get_value"},
	}
	want := make([]any, len(calls))
	for i, call := range calls {
		want[i] = saltCall(t, venv, conf, call)
	}
	for _, c := range []struct{ name, python string }{{"with Salt's library", filepath.Join(venv, "bin/python")}, {"with stand-ins", "/usr/bin/python3"}} {
		t.Run(c.name, func(t *testing.T) {
			h := pythonHost(t, files)
			h.env.Config()["brine_python"] = c.python
			h.reg.Add(configmod.Module)
			for i, call := range calls {
				got := ours(t, h, call)
				if diff := cmp.Diff(want[i], got); diff != "" {
					t.Errorf("%v:\n%s", call, diff)
				}
			}
			list := h.reg.Modules(h.env)
			t.Logf("%d modules, %d functions", len(list), len(h.reg.Functions(h.env)))
		})
	}
}

// saltCall is what stock's salt-call returns: the value, or the text of the error.
func saltCall(t *testing.T, venv, conf string, call []string) any {
	t.Helper()
	args := append([]string{"--local", "-c", conf, "--out", "json", "-l", "quiet"}, call...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(venv, "bin/salt-call"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var all struct {
		Local any `json:"local"`
	}
	if json.Unmarshal(out, &all) != nil {
		text := strings.TrimSpace(stderr.String())
		if text == "" {
			t.Fatalf("salt-call %v: %v", call, err)
		}
		return errorLine(text)
	}
	v, err := json.Marshal(all.Local)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := pyjson.Parse(v)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// errorLine is the part of an error that says what is wrong, without the words that salt-call or a minion put before it.
func errorLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if _, rest, ok := strings.Cut(text, ": "); ok {
		text = rest
	}
	return strings.TrimSuffix(text, ".")
}

// ours is what the module returns in our host.
func ours(t *testing.T, h *host, call []string) any {
	t.Helper()
	args := make([]any, len(call)-1)
	for i, a := range call[1:] {
		args[i] = a
	}
	if call[0] == "sys.argspec" || call[0] == "sys.doc" { // sys itself is not in this registry
		def, err := h.reg.Lookup(call[1], h.env)
		switch {
		case err != nil:
			return err.Error()
		case call[0] == "sys.doc":
			return map[string]any{call[1]: def.Doc}
		}
		return map[string]any{call[1]: def.Argspec()}
	}
	res := h.reg.Run(t.Context(), h.env, modules.Request{Fun: call[0], Args: args})
	if text, ok := res.Return.(string); ok && res.Err != nil {
		return errorLine(text)
	}
	return res.Return
}
