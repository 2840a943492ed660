//go:build packages

package packages

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// wine prepares a Windows environment with Debian's wine for this test, and returns the program that runs others in
// it.
func wine(t *testing.T) string {
	t.Helper()
	const program = "/usr/lib/wine/wine64"
	if _, err := os.Stat(program); err != nil {
		prereq.Missing(t, "wine64")
	}
	t.Setenv("WINEPREFIX", filepath.Join(t.TempDir(), "windows"))
	t.Setenv("WINEDEBUG", "-all")
	t.Setenv("WINEDLLOVERRIDES", "mscoree,mshtml=;bcryptprimitives=n") // do not ask for .NET or a browser
	t.Setenv("DISPLAY", "")
	output(t, program, "wineboot", "--init")
	write(t, os.Getenv("WINEPREFIX")+"/drive_c/windows/system32/bcryptprimitives.dll", 0o644, string(forwardingDLL()))
	t.Cleanup(func() { // its processes end with the test
		if out, err := exec.Command("/usr/lib/wine/wineserver64", "--kill", "--wait").CombinedOutput(); err != nil {
			t.Logf("wineserver: %v %s", err, out)
		}
	})
	return program
}

// forwardingDLL builds a library for Windows without code, whose function ProcessPrng forwards to another library's
// function. Every Go program needs it, and the wine of Debian 12 lacks it. Both functions fill a buffer of a given
// length with random bytes.
func forwardingDLL() []byte {
	const section, base, fileAlign, imageBase = 0x1000, 0x1000, 0x200, 0x3A0000000
	texts := []string{"bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"}
	const directory, tables = 40, 4 + 4 + 2 // the tables of functions, names and ordinals have one entry each
	var at []uint32
	var strs []byte
	for _, s := range texts {
		at = append(at, base+directory+tables+uint32(len(strs)))
		strs = append(append(strs, s...), 0)
	}
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
	}
	size := uint32(directory + tables + len(strs))
	put([]byte("MZ"), make([]byte, 58), uint32(0x40), []byte("PE\x00\x00"))
	put(pe.FileHeader{Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1, SizeOfOptionalHeader: 240,
		Characteristics: pe.IMAGE_FILE_DLL | pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE})
	optional := pe.OptionalHeader64{Magic: 0x20b, SizeOfInitializedData: fileAlign, BaseOfCode: base, ImageBase: imageBase, SectionAlignment: section,
		FileAlignment: fileAlign, MajorOperatingSystemVersion: 6, MajorSubsystemVersion: 6, SizeOfImage: 2 * section, SizeOfHeaders: fileAlign,
		Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_GUI, SizeOfStackReserve: 1 << 20, SizeOfStackCommit: 1 << 12, SizeOfHeapReserve: 1 << 20,
		SizeOfHeapCommit: 1 << 12, NumberOfRvaAndSizes: 16}
	optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: base, Size: size}
	put(optional, pe.SectionHeader32{Name: [8]uint8{'.', 'e', 'd', 'a', 't', 'a'}, VirtualSize: size, VirtualAddress: base, SizeOfRawData: fileAlign,
		PointerToRawData: fileAlign, Characteristics: pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ})
	put(make([]byte, fileAlign-b.Len()))
	put([3]uint32{}, at[0], uint32(1), uint32(1), uint32(1), uint32(base+directory), uint32(base+directory+4), uint32(base+directory+8))
	put(at[2], at[1], uint16(0), strs) // an address inside the directory is that of the other function's name
	put(make([]byte, 2*fileAlign-b.Len()))
	return b.Bytes()
}

// A windowsMinion is the minion for Windows with a configuration, run by wine.
type windowsMinion struct {
	t                  *testing.T
	wine, program, dir string // dir holds the configuration and everything that the minion writes
}

// newWindowsMinion builds the minion and configures it with its paths and the additional lines.
func newWindowsMinion(t *testing.T, more string) *windowsMinion {
	t.Helper()
	dir := t.TempDir()
	m := &windowsMinion{t: t, wine: wine(t), program: dir + "/brine-minion.exe", dir: filepath.Join(dir, "c")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", m.program, "./cmd/brine-minion")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, m.dir+"/minion", 0o644, fmt.Sprintf("id: windows\nroot_dir: '%[1]s'\npki_dir: '%[1]s\\pki'\ncachedir: '%[1]s\\cache'\nsock_dir: '%[1]s\\run'\nlog_file: '%[1]s\\log'\n"+
		"pidfile: '%[1]s\\pid'\nfile_roots: {base: ['%[1]s\\srv']}\npillar_roots: {base: ['%[1]s\\pillar']}\nenable_fqdns_grains: false\nenable_gpu_grains: false\n%[2]s",
		windowsPath(m.dir), more))
	return m
}

// windowsPath returns the name of this host's file in wine.
func windowsPath(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// call runs salt-call with --local.
func (m *windowsMinion) call(args ...string) any {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), m.wine, append([]string{m.program, "call", "-c", windowsPath(m.dir), "--local", "--out=json", "-l", "quiet"}, args...)...)
	out, err := cmd.Output()
	var ret map[string]any
	if jerr := json.Unmarshal(out, &ret); jerr != nil {
		m.t.Fatalf("%v: %v %v: %s", args, err, jerr, out)
	}
	return ret["local"]
}

const windowsState = "told:\n  test.configurable_test_state:\n    - name: '{{ pillar.word }} {{ 3 * 7 }} {{ grains.os }}'\n    - changes: true\n    - result: true\n"

// checkWindowsState checks the result of windowsState.
func checkWindowsState(t *testing.T, v any) {
	t.Helper()
	states, ok := v.(map[string]any)
	if !ok || len(states) != 1 {
		t.Fatalf("state.apply: %v", v)
	}
	for id, s := range states {
		if s := s.(map[string]any); s["result"] != true || len(s["changes"].(map[string]any)) == 0 || s["name"] != "grüße 21 Windows" {
			t.Errorf("%s: %v", id, s)
		}
	}
}

// TestWineMinion runs the minion for Windows under wine: alone, with grains and with states that use templates and
// pillar. The modules for files are not built for Windows.
func TestWineMinion(t *testing.T) {
	m := newWindowsMinion(t, "")
	write(t, m.dir+"/srv/site.sls", 0o644, windowsState)
	write(t, m.dir+"/pillar/top.sls", 0o644, "base: {'*': [words]}\n")
	write(t, m.dir+"/pillar/words.sls", 0o644, "word: grüße\n")
	if d := cmp.Diff([]any{"Windows", "Windows", "AMD64"}, []any{m.call("grains.get", "os"), m.call("grains.get", "kernel"), m.call("grains.get", "cpuarch")}); d != "" {
		t.Error(d)
	}
	checkWindowsState(t, m.call("state.apply", "site"))
}

// TestWineMaster runs the minion for Windows under wine and under a master: it signs in with its own key, and answers
// jobs; states and pillar come from the master. After a restart it answers again, with the same key.
func TestWineMaster(t *testing.T) {
	m := startMaster(t)
	w := newWindowsMinion(t, m.minionConf())
	write(t, m.dir+"/srv/salt/site.sls", 0o644, windowsState)
	write(t, m.dir+"/srv/pillar/top.sls", 0o644, "base: {'*': [words]}\n")
	write(t, m.dir+"/srv/pillar/words.sls", 0o644, "word: grüße\n")
	start := func() (stop func()) {
		cmd := exec.Command(w.wine, w.program, "minion", "-c", windowsPath(w.dir), "-l", "info")
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &log, &log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return sync.OnceFunc(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("the minion said %s", log.String())
			}
		})
	}
	stop := start()
	t.Cleanup(func() { stop() })
	m.awaitPing(t, "windows")
	key, err := os.ReadFile(w.dir + "/pki/minion.pem")
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.call(t, "windows", "test.arg", "grüße", "[1, 2.5, null]", "k={a: true}")
	got, ok := v.(map[string]any)
	if !ok || err != nil {
		t.Fatalf("test.arg = %v %v", v, err)
	}
	kwargs, _ := got["kwargs"].(map[string]any)
	if d := cmp.Diff([]any{[]any{"grüße", []any{1.0, 2.5, nil}}, map[string]any{"a": true}}, []any{got["args"], kwargs["k"]}); d != "" {
		t.Error(d)
	}
	if v, err := m.call(t, "windows", "grains.get", "os"); v != "Windows" || err != nil {
		t.Errorf("grains.get os = %v %v", v, err)
	}
	if v, err := m.call(t, "windows", "sys.list_functions", "test"); err != nil || !strings.Contains(fmt.Sprint(v), "test.ping") {
		t.Errorf("sys.list_functions = %v %v", v, err)
	}
	if v, err := m.call(t, "windows", "test.nothing"); err == nil && !strings.Contains(fmt.Sprint(v), "'test.nothing' is not available.") {
		t.Errorf("an unknown function: %v %v", v, err)
	}
	v, err = m.call(t, "windows", "state.apply", "site")
	if err != nil {
		t.Fatal(err)
	}
	checkWindowsState(t, v)
	stop()
	stop = start()
	m.awaitPing(t, "windows")
	if again, err := os.ReadFile(w.dir + "/pki/minion.pem"); err != nil || !bytes.Equal(key, again) {
		t.Errorf("after a restart the key is another one (%v)", err)
	}
}

// TestWineCore runs, built for Windows and under wine, the tests of code that reads from the network, of YAML, of keys,
// and of the service. It skips tests that limit hostile input to half a second, and a file that wine does not remove.
func TestWineCore(t *testing.T) {
	wine := wine(t)
	packages := []string{"./protocol/payload", "./protocol/crypt", "./internal/python/yaml", "./cmd/internal/winservice"}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-vet=off", "-short", "-p=1", "-skip=TestHostileDocuments|TestLoad$", "-timeout=20m", "-exec", wine}, packages...)...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
