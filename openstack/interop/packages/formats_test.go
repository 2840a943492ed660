//go:build packages

package packages

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// all returns the packages of a format.
func all(t *testing.T, pattern string, least int) []string {
	t.Helper()
	names, err := filepath.Glob("../../../bin/packages/out/" + pattern)
	if err != nil || len(names) < least {
		t.Fatalf("%s are %v %v, fewer than %d: make packages-test builds them", pattern, names, err, least)
	}
	return names
}

// TestLintian: lintian reports nothing for the debs. Each intended deviation is in a package's file of overrides,
// with the reason. The packages of other architectures differ only in their programs.
func TestLintian(t *testing.T) {
	tools(t, "lintian")
	for _, name := range append(all(t, "*_amd64.deb", 5), all(t, "*_all.deb", 1)...) {
		overridden := 0
		var found []string
		for line := range strings.Lines(output(t, "lintian", "--allow-root", "--tag-display-limit", "0", "--display-info", "--pedantic",
			"--show-overrides", "--fail-on=none", name)) {
			switch {
			case strings.HasPrefix(line, "O: "):
				overridden++
			case strings.HasPrefix(line, "M: "): // lintian itself knows the file, and masks the tag
			case !strings.HasPrefix(line, "N:"): // the explanation of an override
				found = append(found, line)
			}
		}
		if len(found) > 0 {
			t.Errorf("%s:\n%s", filepath.Base(name), strings.Join(found, ""))
		}
		t.Logf("%s: overridden on purpose are %d tags", filepath.Base(name), overridden)
	}
}

// TestRPMLint: rpmlint reports nothing for the rpms except what pkg/rpmlint.toml explains.
func TestRPMLint(t *testing.T) {
	prereq.Root(t)
	tools(t, "rpmlint", "unshare")
	names := all(t, "*.rpm", 5)
	// rpmlint extracts packages with cpio(1), which would take the absolute names in these literally and install the
	// files here.
	bin := t.TempDir()
	write(t, bin+"/cpio", 0o755, "#!/bin/sh\nexec /usr/bin/cpio --no-absolute-filenames \"$@\"\n")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	out := output(t, append([]string{"unshare", "--mount", "sh", "-ec", `mount --make-rprivate /
for dir in /usr /etc /var; do mount --bind $dir $dir; mount -o remount,bind,ro $dir; done
exec "$@"`, "sh", "rpmlint", "--config", "../../../pkg/rpmlint.toml"}, names...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	t.Log(lines[len(lines)-1])
	if last := lines[len(lines)-1]; !strings.Contains(last, " 0 errors, 0 warnings") {
		t.Errorf("rpmlint:\n%s", out)
	}
}

// TestPackageSizes checks the size limit of the minion's packages.
func TestPackageSizes(t *testing.T) {
	const most = 8 << 20
	for _, name := range all(t, "*", 21) {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%8.2f MB  %s", float64(fi.Size())/1e6, filepath.Base(name))
		if strings.HasPrefix(filepath.Base(name), "brine-minion") && fi.Size() > most {
			t.Errorf("%s has more than %d bytes", filepath.Base(name), most)
		}
	}
}

// TestRPM installs, checks, upgrades and removes the rpms in an empty root, with rpm and with dnf.
func TestRPM(t *testing.T) {
	tools(t, "rpm", "rpmbuild", "dnf", "createrepo_c", "busybox", "unshare")
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	base, stock := buildRPM(t, dir, baseSpec), buildRPM(t, dir, stockSpec)
	next := built(t, "second/out/brine-minion-"+second+"-1.x86_64.rpm")
	minion, master := built(t, "out/brine-minion-"+first+"-1.x86_64.rpm"), built(t, "out/brine-master-"+first+"-1.x86_64.rpm")

	// Use rpm alone.
	root := filepath.Join(dir, "root")
	rpm := func(args ...string) string {
		t.Helper()
		return output(t, append([]string{"rpm", "--root", root, "--nosignature"}, args...)...)
	}
	rpm("--initdb")
	rpm("-i", base)
	rpm("-i", minion, master)
	if out := rpm("-Va"); out != "" {
		t.Errorf("rpm -Va: %s", out)
	}
	if out := rpm("-q", "--whatprovides", "salt-minion", "salt-master", "salt-api"); strings.Count(out, "brine-") != 3 {
		t.Errorf("provided: %s", out)
	}
	if out := output(t, "chroot", root, "/usr/bin/salt-call", "--local", "test.ping"); out != "local:\n    True\n" {
		t.Errorf("salt-call: %q", out)
	}
	if out := output(t, "chroot", root, "/usr/bin/brine-minion", "--version"); !strings.Contains(out, "v"+first) {
		t.Errorf("version: %q", out)
	}
	write(t, root+"/etc/salt/minion", 0o644, "id: changed\n")
	rpm("-U", next)
	if b, err := os.ReadFile(root + "/etc/salt/minion"); err != nil || string(b) != "id: changed\n" {
		t.Errorf("the upgrade leaves %q %v", b, err)
	}
	rpm("-e", "brine-minion", "brine-master")
	left := output(t, "sh", "-c", `cd "$0" && find etc/salt usr/bin usr/lib/systemd -name '*salt*' -o -name '*brine*' -o -name minion`, root)
	if d := cmp.Diff("etc/salt\n", strings.ReplaceAll(left, "etc/salt/minion.rpmsave\n", "")); d != "" {
		t.Errorf("rpm -e leaves: %s", d)
	}

	// Use dnf with a repository: replace stock's package, and go back.
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, append([]string{"cp"}, base, stock, minion, master, repo)...)
	output(t, "createrepo_c", "--quiet", repo)
	root = filepath.Join(dir, "dnfroot")
	for _, d := range []string{"log", "cache", "persist"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dnf := func(args ...string) string {
		t.Helper()
		return output(t, append([]string{"dnf", "-y", "-q", "--installroot", root, "--repofrompath=brine,file://" + repo, "--repo=brine", "--nogpgcheck",
			"--releasever=9", "--setopt=cachedir=" + dir + "/cache", "--setopt=logdir=" + dir + "/log", "--setopt=persistdir=" + dir + "/persist",
			"--setopt=reposdir=" + dir, "--setopt=install_weak_deps=False", "--setopt=obsoletes=" + obsoletes(args)}, args...)...)
	}
	dnf("install", "base", "salt-minion")
	installed := func(want string) {
		t.Helper()
		out := strings.Fields(output(t, "rpm", "--root", root, "-qa", "--qf", "%{name}\n"))
		slices.Sort(out)
		if got := strings.Join(out, " "); got != want {
			t.Errorf("installed are %s, not %s", got, want)
		}
	}
	installed("base salt-minion")
	write(t, root+"/etc/salt/pki/minion/minion.pem", 0o400, "a key\n")
	dnf("swap", "salt-minion", minion)
	installed("base brine-minion")
	if b, err := os.ReadFile(root + "/etc/salt/pki/minion/minion.pem"); err != nil || string(b) != "a key\n" {
		t.Errorf("the key is %q %v", b, err)
	}
	dnf("install", "brine-master")
	installed("base brine-master brine-minion")
	dnf("upgrade", next)
	if out := output(t, "rpm", "--root", root, "-q", "brine-minion"); !strings.Contains(out, second) {
		t.Errorf("installed is %s", out)
	}
	dnf("remove", "brine-master")
	dnf("swap", "brine-minion", "salt-minion-3007.1")
	installed("base salt-minion")
	if b, err := os.ReadFile(root + "/etc/salt/pki/minion/minion.pem"); err != nil || string(b) != "a key\n" {
		t.Errorf("the key is %q %v", b, err)
	}
}

// obsoletes: on the way back, the repository must not replace stock's package again immediately, as docs/upgrade.md
// says.
func obsoletes(args []string) string {
	if args[0] == "swap" && args[1] == "brine-minion" || args[len(args)-1] == "salt-minion" {
		return "False"
	}
	return "True"
}

// baseSpec provides what the scripts of packages need in an otherwise empty root.
const baseSpec = `Name: base
Version: 1
Release: 1
Summary: a shell
License: GPL
Provides: shadow-utils
Provides: /bin/sh
AutoReqProv: no
%description
a shell
%install
mkdir -p %{buildroot}/bin %{buildroot}/etc
echo root:x:0:0:root:/root:/bin/sh >%{buildroot}/etc/passwd
cp /bin/busybox %{buildroot}/bin/busybox
for p in sh cat sed tail tr id mkdir rm ls find chown timeout getent; do ln -s busybox %{buildroot}/bin/$p; done
%files
/bin/*
/etc/passwd
`

const stockSpec = `Name: salt-minion
Version: 3007.1
Release: 0
Summary: stock
License: Apache-2.0
BuildArch: noarch
AutoReqProv: no
%description
stock
%install
mkdir -p %{buildroot}/usr/bin %{buildroot}/etc/salt/pki/minion
echo '#!/bin/sh' >%{buildroot}/usr/bin/salt-minion
echo '# stock' >%{buildroot}/etc/salt/minion
%files
%attr(0755,root,root) /usr/bin/salt-minion
%config(noreplace) /etc/salt/minion
%dir /etc/salt/pki/minion
`

func buildRPM(t *testing.T, dir, spec string) string {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(spec, "Name: "), "\n")
	write(t, filepath.Join(dir, name+".spec"), 0o644, spec)
	output(t, "rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir+"/build", "--define", "_build_id_links none", "--define", "debug_package %{nil}",
		"--define", "__os_install_post %{nil}", filepath.Join(dir, name+".spec"))
	names, err := filepath.Glob(dir + "/build/RPMS/*/" + name + "-*.rpm")
	if err != nil || len(names) != 1 {
		t.Fatalf("rpmbuild made %v %v", names, err)
	}
	return names[0]
}

// TestCompletions: each option in the help of a program is in its manual page and in the completions for bash, zsh
// and fish, and these shells can read their completions.
func TestCompletions(t *testing.T) {
	option := regexp.MustCompile(`(?:^ {2,}|, )(--?[A-Za-z][A-Za-z0-9_-]*)`)
	tools(t, "man", "col", "bash", "zsh", "fish")
	for _, p := range []struct {
		side, name string
		args       []string
	}{{"minion", "salt-minion", []string{"brine-minion", "minion"}}, {"minion", "salt-call", []string{"brine-minion", "call"}},
		{"master", "salt-master", []string{"brine-master", "master"}}, {"master", "salt", []string{"brine-master", "salt"}},
		{"master", "salt-key", []string{"brine-master", "key"}}, {"master", "salt-run", []string{"brine-master", "run"}},
		{"master", "salt-cp", []string{"brine-master", "cp"}}, {"update", "brine-update", []string{"brine-update"}}} {
		t.Setenv("COLUMNS", "20000")
		var names []string
		for line := range strings.Lines(output(t, append(append([]string{built(t, "linux-amd64/"+p.args[0])}, p.args[1:]...), "--help")...)) {
			head, _, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
			if !strings.HasPrefix(head, "-") {
				continue
			}
			for _, m := range option.FindAllStringSubmatch("  "+head, -1) {
				names = append(names, m[1])
			}
		}
		if len(names) < 3 {
			t.Errorf("the help of %s has the options %v", p.name, names)
		}
		file := func(path string) string { return built(t, "files/"+p.side+"/"+path) }
		page := output(t, "sh", "-ec", `man --warnings -l "$0" 2>&1 | col -b`, file("man/"+p.name+".1.gz"))
		fish, zsh, bash := readText(t, file("fish/"+p.name+".fish")), readText(t, file("zsh/_"+p.name)), readText(t, file("bash/"+p.name))
		for _, name := range names {
			short := " -s " + strings.TrimPrefix(name, "-")
			if long, ok := strings.CutPrefix(name, "--"); ok {
				short = " -l " + long
			}
			word := regexp.MustCompile(`(^|[^A-Za-z_-])` + name + `([^A-Za-z_-]|$)`)
			if !word.MatchString(page) || !word.MatchString(bash) || !word.MatchString(zsh) || !strings.Contains(fish, short+" ") {
				t.Errorf("%s %s: page %v, bash %v, zsh %v, fish %v", p.name, name, word.MatchString(page), word.MatchString(bash), word.MatchString(zsh),
					strings.Contains(fish, short+" "))
			}
		}
		output(t, "bash", "-n", file("bash/"+p.name))
		output(t, "zsh", "-n", file("zsh/_"+p.name))
		output(t, "fish", "-n", file("fish/"+p.name+".fish"))
		t.Logf("%s: %d options", p.name, len(names))
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An apk is a parsed package: its control data, and the scripts and files of its archives.
type apk struct {
	info    map[string][]string
	scripts []string
	files   map[string]*tar.Header
}

// readAPK parses a package as apk does (apk-package(5)): concatenated gzip streams, each of which is a tar archive.
// The control archive has a .PKGINFO with the SHA-256 of the data archive, whose files have their SHA-1 in PAX
// headers.
func readAPK(name string) (*apk, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	a := &apk{info: map[string][]string{}, files: map[string]*tar.Header{}}
	for r := bytes.NewReader(raw); r.Len() > 0; {
		begin := len(raw) - r.Len()
		b := bufio.NewReaderSize(r, 16)
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("stream at %d: %w", begin, err)
		}
		z.Multistream(false)
		content, err := io.ReadAll(z)
		if err != nil {
			return nil, fmt.Errorf("stream at %d: %w", begin, err)
		}
		end := len(raw) - r.Len() - b.Buffered()
		if _, err := r.Seek(int64(end), io.SeekStart); err != nil {
			return nil, err
		}
		if err := a.readArchive(content, raw[begin:end]); err != nil {
			return nil, fmt.Errorf("archive at %d: %w", begin, err)
		}
	}
	return a, nil
}

func (a *apk) readArchive(content, compressed []byte) error {
	control := a.info["pkgname"] == nil
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		switch {
		case h.Name == ".PKGINFO":
			for line := range strings.Lines(string(text)) {
				if k, v, ok := strings.Cut(strings.TrimSpace(line), " = "); ok {
					a.info[k] = append(a.info[k], v)
				}
			}
		case control && strings.HasPrefix(h.Name, "."):
			a.scripts = append(a.scripts, h.Name)
		default:
			if h.Typeflag == tar.TypeReg {
				sum := sha1.Sum(text)
				if got := h.PAXRecords["APK-TOOLS.checksum.SHA1"]; got != hex.EncodeToString(sum[:]) {
					return fmt.Errorf("the checksum of %s is %q", h.Name, got)
				}
			}
			a.files["/"+strings.Trim(h.Name, "/")] = h
		}
	}
	if sum := sha256.Sum256(compressed); !control && a.info["datahash"][0] != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("datahash is %s, the data's is %x", a.info["datahash"], sum)
	}
	return nil
}

// TestAPK reads the apks with its own reader.
func TestAPK(t *testing.T) {
	want := map[string]string{"brine-minion": "/usr/bin/brine-minion /usr/bin/salt-minion /usr/bin/salt-call /etc/init.d/salt-minion /etc/salt/minion",
		"brine-master": "/usr/bin/brine-master /usr/bin/salt-master /usr/bin/salt /usr/bin/salt-key /usr/bin/salt-run /usr/bin/salt-cp /etc/init.d/salt-master"}
	provides := map[string][]string{"brine-minion": {"salt-minion"}, "brine-master": {"salt-master", "salt-api"}}
	for _, name := range all(t, "*.apk", 7) {
		a, err := readAPK(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		pkg := a.info["pkgname"][0]
		if got := a.info["pkgver"]; len(got) != 1 || got[0] != first+"-r1" {
			t.Errorf("%s: pkgver %v", name, got)
		}
		arch := a.info["arch"][0]
		if !strings.Contains(filepath.Base(name), "_"+arch+".apk") {
			t.Errorf("%s is for %s", name, arch)
		}
		for f := range strings.FieldsSeq(want[pkg]) {
			if a.files[f] == nil {
				t.Errorf("%s has no %s", name, f)
			}
		}
		for _, p := range provides[pkg] {
			if !slices.ContainsFunc(a.info["provides"], func(s string) bool { return strings.HasPrefix(s, p+"=3007") }) {
				t.Errorf("%s provides %v", name, a.info["provides"])
			}
			if !slices.Contains(a.info["depend"], "!"+p) {
				t.Errorf("%s conflicts with %v", name, a.info["depend"])
			}
			if !slices.Contains(a.scripts, ".post-install") || !slices.Contains(a.scripts, ".pre-deinstall") || !slices.Contains(a.scripts, ".post-upgrade") {
				t.Errorf("%s has scripts %v", name, a.scripts)
			}
			role := strings.TrimPrefix(pkg, "brine-")
			if h := a.files["/etc/salt/pki/"+role]; h == nil || h.FileInfo().Mode().Perm() != 0o700 {
				t.Errorf("%s: the directory of the keys is %v", name, h)
			}
			if h := a.files["/etc/init.d/salt-"+role]; h == nil || h.FileInfo().Mode().Perm() != 0o755 {
				t.Errorf("%s: the init script is %v", name, h)
			}
		}
	}
	// A damaged apk is refused.
	name := all(t, "brine-doc*.apk", 1)[0]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.apk")
	if err := os.WriteFile(bad, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAPK(bad); err == nil {
		t.Error("a damaged apk is read")
	}
}

// TestRelations: the debs and rpms provide the packages whose place they take, with a version.
func TestRelations(t *testing.T) {
	tools(t, "dpkg-deb", "rpm")
	for name, provides := range map[string][]string{"brine-minion": {"salt-minion"}, "brine-master": {"salt-master", "salt-api"}} {
		deb := output(t, "dpkg-deb", "-f", built(t, "out/"+name+"_"+first+"-1_amd64.deb"), "Provides")
		rpm := output(t, "rpm", "-qp", "--nosignature", "--provides", built(t, "out/"+name+"-"+first+"-1.x86_64.rpm"))
		for _, p := range provides {
			if !strings.Contains(deb, p+" (= 3007.") {
				t.Errorf("the deb %s provides %s", name, deb)
			}
			if !strings.Contains(rpm, p+" = 3007.") {
				t.Errorf("the rpm %s provides %s", name, rpm)
			}
		}
	}
}
