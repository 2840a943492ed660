package bootstrap_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master/bootstrap"
)

type object = map[string]any

// odd has everything that quoting in some form has to bear.
const odd = "it's \"a\" $(b) `c` ${d} %e% #f: \\g\t\n\r\x00\x1f\x7f\u0080\u0085\u009f\u00a0\u2028\ufeff\ufffe\U0001f600 <&> 'x'\r\n@'"

func full() bootstrap.Bootstrap {
	return bootstrap.Bootstrap{ID: "db-7", Masters: []string{"a.example", "b.example:4606"}, RetPort: 14506, PublishPort: 14505, Transport: "tcp", Fingerprint: "aa:bb",
		MasterKey: "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----", Token: "token", PrivateKey: "private\n", PublicKey: "public\n", Tenant: "blue",
		Grains: object{"role": "db", "odd": odd, odd: []any{true, nil, 1.5}}, Config: object{"hash_type": "sha512", "odd": odd}}
}

// wanted is what the minion's configuration must be in every form.
func wanted() object {
	return object{"id": "db-7", "master": []any{"a.example", "b.example:4606"}, "cache_jobs": true, "transport": "tcp", "master_finger": "aa:bb", "join_token": "token",
		"master_port": 14506.0, "publish_port": 14505.0, "hash_type": "sha512", "odd": odd}
}

// read reads a text as JSON and as YAML, which must be the same.
func read(t *testing.T, text []byte) object {
	t.Helper()
	var out object
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	v, err := yaml.Parse(text, "bootstrap")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again object
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(out, again); d != "" {
		t.Fatalf("(-JSON +YAML)\n%s", d)
	}
	return out
}

// files checks the files that a form writes: their names, content and permissions.
func files(t *testing.T, got map[string][2]string, dir string) {
	t.Helper()
	b, conf := full(), wanted()
	if dir != "" {
		if got["join_token"] != [2]string{"0600", b.Token + "\n"} {
			t.Error(got["join_token"])
		}
		delete(got, "join_token")
		delete(conf, "join_token")
		conf["join_token_file"] = dir + "join_token"
	}
	modes := object{}
	for name, f := range got {
		modes[name] = f[0]
	}
	if d := cmp.Diff(object{"minion.d/99-bootstrap.conf": "0600", "grains": "0644", "pki/minion/minion.pem": "0400", "pki/minion/minion.pub": "0644",
		"pki/minion/minion_master.pub": "0644"}, modes); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff(conf, read(t, []byte(got["minion.d/99-bootstrap.conf"][1]))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(b.Grains, read(t, []byte(got["grains"][1]))); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]string{"pki/minion/minion.pem": b.PrivateKey, "pki/minion/minion.pub": b.PublicKey, "pki/minion/minion_master.pub": b.MasterKey + "\n"} {
		if got[name][1] != want {
			t.Errorf("%s: %q", name, got[name][1])
		}
	}
}

func body(t *testing.T, text []byte, err error, first string) []byte {
	t.Helper()
	rest, ok := strings.CutPrefix(string(text), first)
	if err != nil || !ok {
		t.Fatal(err, string(text))
	}
	return []byte(rest)
}

func TestCloudConfig(t *testing.T) {
	text, err := full().CloudConfig()
	got := read(t, body(t, text, err, "#cloud-config\n"))
	want := object{"salt_minion": object{"conf": wanted(), "grains": full().Grains, "public_key": "public\n", "private_key": "private\n"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	least, err := bootstrap.Bootstrap{ID: "m", Masters: []string{"salt"}}.CloudConfig()
	want = object{"salt_minion": object{"conf": object{"id": "m", "master": "salt", "cache_jobs": true}}}
	if d := cmp.Diff(want, read(t, body(t, least, err, "#cloud-config\n"))); d != "" {
		t.Error(d)
	}
}

// TestTheZeroValue: the zero value, which EnsureMinion returns with an error, yields no document.
func TestTheZeroValue(t *testing.T) {
	var b bootstrap.Bootstrap
	for name, render := range map[string]func() ([]byte, error){"CloudConfig": b.CloudConfig, "CloudConfigFiles": b.CloudConfigFiles, "PowerShell": b.PowerShell, "JSON": b.JSON, "Env": b.Env} {
		if text, err := render(); err == nil || err.Error() != "cannot render bootstrap: it has no minion id" || text != nil {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

func decoded(t *testing.T, text any) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text.(string))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCloudConfigFiles(t *testing.T) {
	text, err := full().CloudConfigFiles()
	doc := read(t, body(t, text, err, "#cloud-config\n"))
	got := map[string][2]string{}
	for _, f := range doc["write_files"].([]any) {
		f := f.(object)
		if f["owner"] != "root:root" || f["encoding"] != "b64" {
			t.Error(f)
		}
		got[strings.TrimPrefix(f["path"].(string), "/etc/salt/")] = [2]string{f["permissions"].(string), decoded(t, f["content"])}
	}
	files(t, got, "/etc/salt/")
	if d := cmp.Diff([]any{[]any{"systemctl", "enable", "salt-minion"}, []any{"systemctl", "restart", "salt-minion"}}, doc["runcmd"]); d != "" {
		t.Error(d)
	}
}

// TestPowerShell: the script contains its input only in base64, and private files get their permissions before
// anything is written to them.
func TestPowerShell(t *testing.T) {
	text, err := full().PowerShell()
	script := string(body(t, text, err, "#ps1_sysnative\r\n$ErrorActionPreference = 'Stop'\r\n$conf = Join-Path $env:ProgramData 'Salt Project\\Salt\\conf'\r\n"))
	const (
		start  = `\$file = Join-Path \$conf '([a-z0-9_.\\-]+)'\r\nNew-Item -ItemType Directory -Force -Path \(Split-Path \$file\) \| Out-Null\r\n`
		closed = `New-Item -ItemType File -Force -Path \$file \| Out-Null\r\nicacls \$file /inheritance:r /grant '\*S-1-5-18:F' '\*S-1-5-32-544:F' \| Out-Null\r\n` +
			`if \(\$LASTEXITCODE\) { throw "icacls: \$LASTEXITCODE" }\r\n`
		write = `\[IO\.File\]::WriteAllBytes\(\$file, \[Convert\]::FromBase64String\('([A-Za-z0-9+/=]+)'\)\)\r\n`
	)
	part := regexp.MustCompile(`^` + start + `(` + closed + `)?` + write)
	got := map[string][2]string{}
	for {
		m := part.FindStringSubmatch(script)
		if m == nil {
			break
		}
		script = script[len(m[0]):]
		name := strings.ReplaceAll(m[1], `\`, "/")
		mode := "0644"
		if m[2] != "" {
			mode = map[string]string{"pki/minion/minion.pem": "0400"}[name]
			if mode == "" {
				mode = "0600"
			}
		}
		got[name] = [2]string{mode, decoded(t, m[3])}
	}
	files(t, got, "")
	if script != "Set-Service -Name salt-minion -StartupType Automatic\r\nRestart-Service -Name salt-minion\r\n" {
		t.Errorf("the rest of the script: %q", script)
	}
}

func TestJSON(t *testing.T) {
	text, err := full().JSON()
	b := full()
	want := object{"v": 1.0, "id": b.ID, "master": []any{"a.example", "b.example:4606"}, "config": wanted(), "grains": b.Grains, "master_fingerprint": b.Fingerprint,
		"master_pubkey": b.MasterKey, "join_token": b.Token, "transport": b.Transport, "tenant": b.Tenant, "private_key": b.PrivateKey, "public_key": b.PublicKey}
	if d := cmp.Diff(want, read(t, body(t, text, err, ""))); d != "" {
		t.Error(d)
	}
}

// TestEnv: a shell that reads the file gets the exact values, whatever they contain, and executes no part of them.
func TestEnv(t *testing.T) {
	b := full()
	b.Token, b.ID = `it's "a" $(touch b) `+"`touch c`"+` ${d} \g #`, "db-7"
	text, err := b.Env()
	if err != nil {
		t.Fatal(err)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "env"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"MINION_ID": b.ID, "MASTER": "a.example,b.example:4606", "MASTER_PORT": "14506", "PUBLISH_PORT": "14505", "TRANSPORT": "tcp",
		"MASTER_FINGER": "aa:bb", "JOIN_TOKEN": b.Token, "MASTER_KEY": b.MasterKey, "MINION_PEM": b.PrivateKey, "MINION_PUB": b.PublicKey}
	got := map[string]string{}
	for name := range want {
		c := exec.Command(sh, "-c", `. ./env; printf %s "$SALT_`+name+`"`)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got[name] = string(out)
		switch name {
		case "MASTER_KEY", "MINION_PEM", "MINION_PUB":
			got[name] = decoded(t, got[name])
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Error("something was run:", left, err)
	}
	b.Masters = []string{"a\nSALT_X=y"}
	if text, err := b.Env(); err == nil {
		t.Errorf("a line break: %s", text)
	}
}
