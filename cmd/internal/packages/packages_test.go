package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestHelp prints a table of options and parses it.
func TestHelp(t *testing.T) {
	p := &optparse.Parser{Prog: "salt-x", Usage: "%prog [options] <function>", Description: "Does x. And y.", Epilog: "The end.", Width: 20000,
		Options: []optparse.Option{
			{Names: []string{"-c", "--config-dir"}, Help: "Where."},
			{Names: []string{"--a-very-long-name-of-an-option"}, Metavar: "a,b", Help: "Two  blanks. One of 'x', 'y' or 'z'."},
			{Names: []string{"-v"}, Kind: optparse.True, Help: "More."},
		},
		Groups: []optparse.Group{{Title: "Output", Description: "Of what.", Options: []optparse.Option{{Names: []string{"--out-file"}, Help: "File."}}}},
	}
	got, err := parseHelp(p.Help())
	if err != nil {
		t.Fatal(err)
	}
	want := &help{usage: "salt-x [options] <function>", description: "Does x. And y.", epilog: "The end.", groups: []group{
		{title: "Options", options: []option{
			{[]string{"-c", "--config-dir"}, "CONFIG_DIR", "Where."},
			{[]string{"--a-very-long-name-of-an-option"}, "a,b", "Two  blanks. One of 'x', 'y' or 'z'."},
			{[]string{"-v"}, "", "More."},
		}},
		{"Output", "Of what.", []option{{[]string{"--out-file"}, "OUTPUT", "File."}}},
	}}
	want.groups[1].options[0].metavar = "OUT_FILE"
	if d := cmp.Diff(want, got, cmp.AllowUnexported(help{}, group{}, option{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"x", "y", "z"}, got.groups[0].options[1].choiceList()); d != "" {
		t.Error(d)
	}
	for _, text := range []string{"", "Options:\n", "Usage: x\n", "Usage: x\n\nOptions:\n  -a, b  help\n"} {
		if h, err := parseHelp(text); err == nil {
			t.Errorf("%q is read as %v", text, h)
		}
	}
	script := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(script, []byte(got.bash("salt-x")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("bash", "-c", `. "$0"; COMP_WORDS=(salt-x --a-very-long-name-of-an-option y); COMP_CWORD=2; _brine_salt_x; echo "${COMPREPLY[@]}"
		COMP_WORDS=(salt-x --o); COMP_CWORD=1; _brine_salt_x; echo "${COMPREPLY[@]}"`, script).CombinedOutput()
	if err != nil || string(out) != "y\n--out-file\n" {
		t.Errorf("bash completes to %q %v", out, err)
	}
}

// TestSources: the files of the repository that packages contain exist.
func TestSources(t *testing.T) {
	t.Chdir("../../..")
	taken := regexp.MustCompile(`(?:src: |: )(pkg/[^,}\s]+)`)
	n := 0
	for _, list := range []string{"pkg/minion/nfpm.yaml", "pkg/master/nfpm.yaml", "pkg/update/nfpm.yaml", "pkg/doc/nfpm.yaml", "pkg/python/nfpm.yaml",
		"pkg/minion/contents.yaml", "pkg/heat-minion/contents.yaml", "pkg/trove-minion/contents.yaml"} {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range taken.FindAllStringSubmatch(string(text), -1) {
			n++
			if names, err := filepath.Glob(m[1]); err != nil || len(names) == 0 {
				t.Errorf("%s: there is no %s (%v)", list, m[1], err)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d sources are found", n)
	}
}

// TestTurns: each test of packages is in one of the parts that CI runs in turns.
func TestTurns(t *testing.T) {
	t.Chdir("../../..")
	text, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var parts []*regexp.Regexp
	for _, m := range regexp.MustCompile(`tests='([^']+)'`).FindAllSubmatch(text, -1) {
		parts = append(parts, regexp.MustCompile("^Test("+string(m[1])+")"))
	}
	names, err := filepath.Glob("openstack/interop/packages/*_test.go")
	if err != nil || len(names) == 0 || len(parts) != 3 {
		t.Fatalf("%d parts of %v %v", len(parts), names, err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			n := 0
			for _, p := range parts {
				if p.MatchString(m[1]) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s is in %d parts of .ci/run", name, m[1], n)
			}
		}
	}
}

func TestChangelog(t *testing.T) {
	const text = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 1.2.0 (2026)\n\n### Minion\n\n- One\n  thing.\n\n### Master\n\n- Two.\n\n## 1.1.0\n\n- Old.\n"
	if d := cmp.Diff([]string{"One thing.", "Two."}, sectionLines(text, "## 1.2.0")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"New."}, sectionLines(text, "## Unreleased")); d != "" {
		t.Error(d)
	}
	notes, err := changesOf(text, "9.9.9")
	if d := cmp.Diff([]string{"New."}, notes); d != "" || err != nil {
		t.Error(d, err)
	}
	if out, err := rpmChangelog(notes, "9.9.9", 0); err != nil || !strings.Contains(out, "note: New.") || !strings.Contains(out, "semver: 9.9.9-1") {
		t.Errorf("%s %v", out, err)
	}
	want := "x (9.9.9~rc.1-1) stable; urgency=medium\n\n  * New.\n\n -- The brine authors <brine-salt@users.noreply.github.com>  Thu, 01 Jan 1970 00:00:00 +0000\n"
	if d := cmp.Diff(want, debChangelog(notes, "x", "9.9.9-rc.1", 0)); d != "" {
		t.Error(d)
	}
	if out, err := changesOf("# Changelog\n", "1.0.0"); err == nil {
		t.Errorf("no change is %q", out)
	}
}

// TestWheel reads a wheel as pip does: RECORD has the hash of every file, and the program is executable.
func TestWheel(t *testing.T) {
	t.Chdir("../../..")
	dir := t.TempDir()
	if err := writeText("#!program", dir, "brine-master"); err != nil {
		t.Fatal(err)
	}
	if err := writeText("licences", dir, "master", "NOTICES"); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, out := range []string{dir + "/a", dir + "/b"} {
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := writeWheel(out, dir+"/brine-master", dir, arches[0], "1.2.3-rc.1", 1e9); err != nil {
			t.Fatal(err)
		}
		name := out + "/brine_openstack-1.2.3rc1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl"
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(b)))
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		record, err := fs.ReadFile(z, "brine_openstack-1.2.3rc1.dist-info/RECORD")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			content, err := fs.ReadFile(z, f.Name)
			sum := sha256.Sum256(content)
			line := fmt.Sprintf("%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
			if err != nil || !strings.HasSuffix(f.Name, "/RECORD") && !strings.Contains(string(record), line) {
				t.Errorf("RECORD lacks %s%v", line, err)
			}
			if f.Name == "brine_openstack/bin/brine-master" && (f.Mode().Perm() != 0o755 || string(content) != "#!program") {
				t.Errorf("the program is %q with mode %v", content, f.Mode())
			}
		}
		points, err := fs.ReadFile(z, "brine_openstack-1.2.3rc1.dist-info/entry_points.txt")
		if err != nil || string(points) != "[sahara.remote]\nbrine = brine_openstack.sahara_remote:Driver\n" {
			t.Errorf("entry_points.txt is %q %v", points, err)
		}
		for _, name := range []string{"brine_openstack/sidecar.py", "brine_openstack/heat/server.py", "brine_openstack/bin/brine-master"} {
			if _, err := fs.Stat(z, name); err != nil {
				t.Error(err)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Error("the same files make two wheels")
	}
	for release, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-beta": "1.2.3b0", "1.2.3-alpha.7": "1.2.3a7", "0.0.0-dev": "0.0.0.dev0", "1.0.0-x.y": "1.0.0.dev0"} {
		if got := pythonVersion(release); got != want {
			t.Errorf("%s is %s to Python", release, got)
		}
	}
}

// TestNotices: every linked module has a licence, and its text is included.
func TestNotices(t *testing.T) {
	t.Chdir("../../..")
	for side, program := range linked {
		text, err := licenseNotices(program.dir, program.path)
		if err != nil {
			t.Fatal(err)
		}
		library := "github.com/go-zeromq/zmq4 v"
		if side == "update" {
			library = "github.com/theupdateframework/go-tuf/v2 v"
		}
		for _, want := range []string{"\nbrine\n", "\nGo 1.", library, "Apache License", "Redistribution and use in source and binary forms"} {
			if !strings.Contains(text, want) {
				t.Errorf("the notices of the %s lack %q", side, want)
			}
		}
	}
}

// TestCompressDeb compares a package's contents, as dpkg reads them, before and after.
func TestCompressDeb(t *testing.T) {
	for _, tool := range []string{"dpkg-deb", "xz"} {
		if _, err := exec.LookPath(tool); err != nil {
			prereq.Missing(t, tool)
		}
	}
	dir := t.TempDir()
	if err := writeText("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n", dir, "x/DEBIAN/control"); err != nil {
		t.Fatal(err)
	}
	if err := writeText(strings.Repeat("abc\n", 10_001), dir, "x/usr/share/x"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x.deb")
	if out, err := exec.Command("dpkg-deb", "-Znone", "--build", filepath.Join(dir, "x"), name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	look := func() string {
		out, err := exec.Command("sh", "-c", `dpkg-deb -f "$0" && dpkg-deb -c "$0"`, name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	before := look()
	if err := compressDeb(name); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, look()); d != "" {
		t.Error(d)
	}
	if fi, err := os.Stat(name); err != nil || fi.Size() > 12_000 { // of 50 KB; the control data does not change
		t.Errorf("the package has %d bytes %v", fi.Size(), err)
	}
	for _, text := range []string{"", "no archive", "!<arch>\nshort", "!<arch>\n" + strings.Repeat("9", 60)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := compressDeb(name); err == nil {
			t.Errorf("%q is a package", text)
		}
	}
}

// TestCompressAPK compares a package's contents before and after, as apk reads them: the files, and their checksum in
// the control data. Packages of two checkouts, whose scripts have different times, are equal.
func TestCompressAPK(t *testing.T) {
	if _, err := exec.LookPath("libdeflate-gzip"); err != nil {
		prereq.Missing(t, "libdeflate-gzip")
	}
	stream := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	files := ""
	for i := range 20_000 {
		files += fmt.Sprint("line ", i*i, "\n")
	}
	data := stream(files)
	info := "pkgname = x\ndatahash = %s\nsize = 1\n"
	control := func(info string, at time.Time) []byte {
		t.Helper()
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, f := range []struct {
			name, text string
			at         time.Time
		}{{".PKGINFO", info, time.Unix(0, 0)}, {".post-install", "#!/bin/sh\n", at}} {
			h := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.text)), ModTime: f.at, Format: tar.FormatPAX}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(f.text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return stream(b.String())
	}
	name := filepath.Join(t.TempDir(), "x.apk")
	write := func(streams ...[]byte) {
		t.Helper()
		if err := os.WriteFile(name, slices.Concat(streams...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var made [][]byte
	for _, at := range []time.Time{time.Unix(1795739635, 897161700), time.Unix(1795739999, 5)} {
		write(control(fmt.Sprintf(info, hexSum(data)), at), data)
		if err := compressAPK(name); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b)
	}
	b := made[0]
	if !bytes.Equal(b, made[1]) {
		t.Error("packages whose scripts have other times differ")
	}
	head, size, err := gunzip(b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	r := tar.NewReader(bytes.NewReader(append(head, make([]byte, 1024)...)))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || h.Mode != 0o755 {
			t.Errorf("%s has mode %o: %v", h.Name, h.Mode, err)
		}
		got[h.Name] = string(text)
	}
	want := map[string]string{".PKGINFO": fmt.Sprintf(info, hexSum(b[size:])), ".post-install": "#!/bin/sh\n"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, end, err := gunzip(b[size:]); err != nil || string(got) != files || size+end != len(b) || end >= len(data) {
		t.Errorf("%d bytes of %d, with %d of %d unpacked: %v", end, len(data), len(got), len(files), err)
	}
	for what, streams := range map[string][][]byte{"one stream": {data}, "three": {data, data, data}, "no sum": {control("pkgname = x\n", time.Unix(0, 0)), data},
		"another sum":    {control(fmt.Sprintf(info, hexSum(nil)), time.Unix(0, 0)), data},
		"no tar archive": {stream(fmt.Sprintf(info, hexSum(data))), data}, "a half": {data[:len(data)/2]}, "nothing": nil} {
		write(streams...)
		if err := compressAPK(name); err == nil {
			t.Errorf("%s is a package", what)
		}
	}
}

func TestChosenArches(t *testing.T) {
	got, err := chosenArches("riscv64 armv7")
	if d := cmp.Diff([]arch{arches[3], arches[2]}, got, cmp.AllowUnexported(arch{})); d != "" || err != nil {
		t.Error(d, err)
	}
	for list, want := range map[string]string{"": "-arch is needed", "amd64 arm7": "for arm7: it is unknown"} {
		if got, err := chosenArches(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v", list, got, err)
		}
	}
}
