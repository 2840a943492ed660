//go:build packages

package packages

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// wine prepares a Windows of Debian's wine for this test, and returns the program that runs others in it.
func wine(t *testing.T) string {
	t.Helper()
	const program = "/usr/lib/wine/wine64"
	if _, err := os.Stat(program); err != nil {
		prereq.Missing(t, "wine64")
	}
	t.Setenv("WINEPREFIX", filepath.Join(t.TempDir(), "windows"))
	t.Setenv("WINEDEBUG", "-all")
	t.Setenv("WINEDLLOVERRIDES", "mscoree,mshtml=") // neither .NET nor a browser is asked for
	t.Setenv("DISPLAY", "")
	output(t, program, "wineboot", "--init")
	t.Cleanup(func() { // its processes end with the test
		if out, err := exec.Command("/usr/lib/wine/wineserver64", "--kill", "--wait").CombinedOutput(); err != nil {
			t.Logf("wineserver: %v %s", err, out)
		}
	})
	return program
}

// TestWineMinion runs the minion for Windows under wine: by itself with grains, files and states with templates and pillar, and under a master.
func TestWineMinion(t *testing.T) {
	wine := wine(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/brine-minion.exe", "./cmd/brine-minion")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := startMaster(t)
	conf := filepath.Join(dir, "c")
	windows := func(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }
	write(t, conf+"/minion", 0o644, fmt.Sprintf("id: windows\nroot_dir: '%[1]s'\npki_dir: '%[1]s\\pki'\ncachedir: '%[1]s\\cache'\nsock_dir: '%[1]s\\run'\nlog_file: '%[1]s\\log'\n"+
		"pidfile: '%[1]s\\pid'\nfile_roots: {base: ['%[1]s\\srv']}\npillar_roots: {base: ['%[1]s\\pillar']}\nenable_fqdns_grains: false\nenable_gpu_grains: false\n%[2]s",
		windows(conf), m.minionConf()))
	write(t, conf+"/srv/site.sls", 0o644, "written:\n  file.managed:\n    - name: '"+windows(conf)+"\\written'\n    - contents: '{{ pillar.word }} {{ 3 * 7 }} {{ grains.os }}'\n")
	write(t, conf+"/pillar/top.sls", 0o644, "base: {'*': [words]}\n")
	write(t, conf+"/pillar/words.sls", 0o644, "word: grüße\n")
	local := func(args ...string) any {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), wine, append([]string{dir + "/brine-minion.exe", "call", "-c", windows(conf), "--local", "--out=json", "-l", "quiet"}, args...)...)
		out, err := cmd.Output()
		var ret map[string]any
		if jerr := json.Unmarshal(out, &ret); jerr != nil {
			t.Fatalf("%v: %v %v: %s", args, err, jerr, out)
		}
		return ret["local"]
	}
	if d := cmp.Diff([]any{"Windows", "Windows", "AMD64"}, []any{local("grains.get", "os"), local("grains.get", "kernel"), local("grains.get", "cpuarch")}); d != "" {
		t.Error(d)
	}
	states, ok := local("state.apply", "site").(map[string]any)
	if !ok || len(states) != 1 {
		t.Fatalf("state.apply: %v", states)
	}
	for id, s := range states {
		if s := s.(map[string]any); s["result"] != true || len(s["changes"].(map[string]any)) == 0 {
			t.Errorf("%s: %v", id, s)
		}
	}
	if b, err := os.ReadFile(conf + "/written"); err != nil || strings.TrimSpace(string(b)) != "grüße 21 Windows" {
		t.Errorf("the state wrote %q %v", b, err)
	}
	if v := local("file.file_exists", windows(conf)+`\written`); v != true {
		t.Errorf("file.file_exists: %v", v)
	}
	// Under a master: sign-in with a key of its own, and jobs.
	cmd := exec.CommandContext(t.Context(), wine, dir+"/brine-minion.exe", "minion", "-c", windows(conf), "-l", "warning")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("minion: %s", log.String())
		}
	})
	m.awaitPing(t, "windows")
	v, err := m.call(t, "windows", "test.arg", "grüße", "[1, null]")
	if got, ok := v.(map[string]any); err != nil || !ok || cmp.Diff([]any{"grüße", []any{1.0, nil}}, got["args"]) != "" {
		t.Errorf("test.arg = %v %v", v, err)
	}
}

// TestWineCore runs the tests of what is read from the network and from disks, and of keys and signatures, as built for Windows, under wine.
func TestWineCore(t *testing.T) {
	wine := wine(t)
	packages := []string{"./protocol/payload", "./protocol/crypt", "./internal/signed", "./internal/python/yaml", "./minion/journal", "./internal/atomicfile"}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-vet=off", "-short", "-p=1", "-skip=TestHostileDocuments", "-timeout=20m", "-exec", wine}, packages...)...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
