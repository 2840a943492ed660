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
	t.Setenv("WINEDLLOVERRIDES", "mscoree,mshtml=;bcryptprimitives=n") // neither .NET nor a browser is asked for
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

// forwardingDLL is a library for Windows without code, whose function ProcessPrng is another library's: every program of Go needs it, and the wine
// of Debian 12 does not have it. Both fill a buffer of a length with random bytes.
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
	put(at[2], at[1], uint16(0), strs) // an address in the directory is that of the other function's name
	put(make([]byte, 2*fileAlign-b.Len()))
	return b.Bytes()
}

// TestWineMinion runs the minion for Windows under wine: by itself, with grains and states with templates and pillar. The modules of files are not built for
// Windows, and under a master it has not been run.
func TestWineMinion(t *testing.T) {
	wine := wine(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/brine-minion.exe", "./cmd/brine-minion")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conf := filepath.Join(dir, "c")
	windows := func(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }
	write(t, conf+"/minion", 0o644, fmt.Sprintf("id: windows\nroot_dir: '%[1]s'\npki_dir: '%[1]s\\pki'\ncachedir: '%[1]s\\cache'\nsock_dir: '%[1]s\\run'\nlog_file: '%[1]s\\log'\n"+
		"pidfile: '%[1]s\\pid'\nfile_roots: {base: ['%[1]s\\srv']}\npillar_roots: {base: ['%[1]s\\pillar']}\nenable_fqdns_grains: false\nenable_gpu_grains: false\n",
		windows(conf)))
	write(t, conf+"/srv/site.sls", 0o644, "told:\n  test.configurable_test_state:\n    - name: '{{ pillar.word }} {{ 3 * 7 }} {{ grains.os }}'\n    - changes: true\n    - result: true\n")
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
		if s := s.(map[string]any); s["result"] != true || len(s["changes"].(map[string]any)) == 0 || s["name"] != "grüße 21 Windows" {
			t.Errorf("%s: %v", id, s)
		}
	}
}

// TestWineCore runs the tests of what is read from the network, of YAML, and of keys, as built for Windows, under wine. What has half a
// second for hostile input is left out, and a file that wine does not remove.
func TestWineCore(t *testing.T) {
	wine := wine(t)
	packages := []string{"./protocol/payload", "./protocol/crypt", "./internal/python/yaml"}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-vet=off", "-short", "-p=1", "-skip=TestHostileDocuments|TestLoad$", "-timeout=20m", "-exec", wine}, packages...)...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
