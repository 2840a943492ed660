// Command release collects the files of a release in one directory and signs them: archives of the programs for every
// platform, the packages from "make packages", lists of the programs' components (in CycloneDX, by the tool
// cyclonedx-gomod), the licences, the changes, and the SHA-256 checksums of all files. Each file gets a signature
// file in minisign's format.
//
// The same commit results in the same bytes, wherever it is built. The private key is in a minisign file, or in an
// ssh agent, which does not reveal it.
//
//	release -version 1.2.3 -programs bin/release/programs -packages bin/release/packages -out bin/release/1.2.3 -key FILE
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cyclonedx is the tool that lists a program's components. Its version is set only here.
const cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// mains are the programs for which components are listed, with the directory of their module.
var mains = []struct{ name, module string }{{"brine-minion", "."}, {"brine-master", "."}, {"heat-minion", "openstack"},
	{"trove-minion", "openstack"},
	{"brine-update", "."}}

var semver = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// A release holds the parameters of the command line.
type release struct {
	version, programs, packages, out string
	epoch                            int64
	tagged                           bool // the commit is tagged with the version
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the version of the release, such as 1.2.3 or 1.2.3-rc.1")
	flag.StringVar(&r.programs, "programs", "", "the directory with a directory of programs for each platform: linux-amd64 and so on")
	flag.StringVar(&r.packages, "packages", "", "the directory that make packages wrote: packages in out, licences in files")
	flag.StringVar(&r.out, "out", "", "the directory for the release; it must not exist")
	key := flag.String("key", "", "the file with minisign's private key")
	password := flag.String("password-file", "", "the file with the password of that key, if it has one")
	agentKey := flag.String("agent-key", "", "the file with the public ed25519 key (ssh's form) of which $SSH_AUTH_SOCK has the private one")
	flag.Parse()
	r.version = strings.TrimPrefix(r.version, "v")
	s, err := openSigner(*key, *password, *agentKey)
	if err == nil {
		err = r.make(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Print(done(r.out, s))
}

// done returns what the command prints at the end: the release, and the file of the public key, which hosts pin.
func done(out string, s *signer) string {
	public, err := s.public.MarshalText()
	if err != nil {
		panic(err) // it has a fixed form
	}
	return fmt.Sprintf("%s is signed with the key\n%s\n", out, public)
}

// make writes the release. If it fails it removes what it has written.
func (r *release) make(s *signer) (err error) {
	switch {
	case !semver.MatchString(r.version):
		return fmt.Errorf("cannot release version %q: it must be like 1.2.3 or 1.2.3-rc.1", r.version)
	case r.programs == "" || r.packages == "" || r.out == "":
		return errors.New("cannot make a release: -programs, -packages and -out are needed")
	}
	tags, err := exec.Command("git", "tag", "--points-at", "HEAD", "v*").Output()
	if err != nil {
		return fmt.Errorf("cannot read the tags of the last commit: %w", err)
	}
	if list := strings.Fields(string(tags)); len(list) > 0 && !slices.Contains(list, "v"+r.version) {
		return fmt.Errorf("cannot release version %s: the tag of the commit is %s", r.version, list[0])
	} else if len(list) > 0 {
		r.tagged = true
	}
	out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
	if err != nil {
		return fmt.Errorf("cannot read the time of the last commit: %w", err)
	}
	if r.epoch, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("cannot make a release: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(r.out)
		}
	}()
	for _, step := range []func() error{r.notices, r.changes, r.archives, r.copyPackages, r.components} {
		if err := step(); err != nil {
			return err
		}
	}
	return r.sign(s)
}

// notices writes the licences of all programs to one file.
func (r *release) notices() error {
	var all []byte
	for _, p := range []string{"minion", "master", "update", "heat-minion", "trove-minion"} {
		text, err := os.ReadFile(filepath.Join(r.packages, "files", p, "NOTICES"))
		if err != nil {
			return fmt.Errorf("cannot read the licences: %w; make packages writes them", err)
		}
		all = fmt.Appendf(all, "%s\n\n%s\n", "#### "+p, text)
	}
	return os.WriteFile(filepath.Join(r.out, "NOTICES"), all, 0o644)
}

// changes writes the version's section in CHANGELOG.md. A test release of a commit without a tag may use the section
// "Unreleased".
func (r *release) changes() error {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	section, err := sectionOf(string(text), r.version, !r.tagged)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "CHANGES.md"), []byte(section), 0o644)
}

func sectionOf(text, version string, unreleased bool) (string, error) {
	headings := []string{version}
	if unreleased {
		headings = append(headings, "Unreleased")
	}
	for _, heading := range headings {
		var section strings.Builder
		inside := false
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "## "); ok {
				inside = strings.Fields(name + " -")[0] == heading
			} else if inside {
				section.WriteString(line)
			}
		}
		if s := strings.TrimSpace(section.String()); s != "" {
			return "# brine " + version + "\n\n" + s + "\n", nil
		}
	}
	return "", fmt.Errorf("cannot find the changes of %s in CHANGELOG.md: there is no section \"## %s\"", version, version)
}

// services are the files that install the minion as a service on platforms without packages.
var services = map[string][]member{
	"windows": {{from: "pkg/windows/install.ps1", mode: 0o644}, {from: "pkg/windows/uninstall.ps1", mode: 0o644}},
	"freebsd": {{from: "pkg/freebsd/salt_minion", mode: 0o755}},
	"darwin":  {{from: "pkg/macos/io.github.brine-salt.minion.plist", mode: 0o644}},
}

// archives packs the programs of each platform: as tar.gz, or as zip for Windows.
func (r *release) archives() error {
	dirs, err := filepath.Glob(filepath.Join(r.programs, "*-*"))
	if err != nil {
		return fmt.Errorf("cannot list the programs: %w", err)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("cannot pack the programs: there are none in %s", r.programs)
	}
	for _, dir := range dirs {
		platform := filepath.Base(dir)
		top := "brine-" + r.version + "-" + platform
		list, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		var files []member
		for _, e := range list {
			files = append(files, member{e.Name(), filepath.Join(dir, e.Name()), 0o755})
		}
		for _, name := range []string{"LICENSE", "README.md"} {
			files = append(files, member{name, name, 0o644})
		}
		files = append(files, member{"NOTICES", filepath.Join(r.out, "NOTICES"), 0o644})
		for _, s := range services[strings.SplitN(platform, "-", 2)[0]] {
			files = append(files, member{filepath.Base(s.from), s.from, s.mode})
		}
		write, suffix := r.writeTar, ".tar.gz"
		if strings.HasPrefix(platform, "windows") {
			write, suffix = r.writeZip, ".zip"
		}
		if err := write(filepath.Join(r.out, top+suffix), top, files); err != nil {
			return fmt.Errorf("cannot pack %s: %w", platform, err)
		}
	}
	return nil
}

// A member is a file of an archive.
type member struct {
	name, from string
	mode       os.FileMode
}

func (r *release) writeTar(name, top string, files []member) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, m := range files {
		content, err := os.ReadFile(m.from)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: top + "/" + m.name, Mode: int64(m.mode), Size: int64(len(content)),
				ModTime: time.Unix(r.epoch, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close(), f.Close())
}

func (r *release) writeZip(name, top string, files []member) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for _, m := range files {
		h := &zip.FileHeader{Name: top + "/" + m.name, Method: zip.Deflate, Modified: time.Unix(r.epoch, 0).UTC()}
		h.SetMode(m.mode)
		content, err := os.ReadFile(m.from)
		if err != nil {
			return err
		}
		part, err := w.CreateHeader(h)
		if err == nil {
			_, err = part.Write(content)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), f.Close())
}

func (r *release) copyPackages() error {
	names, err := filepath.Glob(filepath.Join(r.packages, "out", "*"))
	if err != nil {
		return fmt.Errorf("cannot list the packages: %w", err)
	}
	if len(names) == 0 {
		return fmt.Errorf("cannot copy the packages: there are none in %s", filepath.Join(r.packages, "out"))
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.out, filepath.Base(name)), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// components writes the list of each program's modules.
func (r *release) components() error {
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	for _, m := range mains {
		file := filepath.Join(out, m.name+"-"+r.version+".cdx.json")
		cmd := exec.Command("go", "run", cyclonedx, "app", "-json", "-licenses", "-std", "-noserial", "-notimestamp",
			"-main", "cmd/"+m.name, "-output", file, ".")
		cmd.Dir = m.module
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cannot list the components of %s: %w", m.name, err)
		}
		list, err := os.ReadFile(file)
		if err == nil {
			list, err = withoutOwnHash(list)
		}
		if err == nil {
			err = os.WriteFile(file, list, 0o644)
		}
		if err != nil {
			return fmt.Errorf("the components of %s: %w", m.name, err)
		}
	}
	return nil
}

// withoutOwnHash removes brine's own hash from a list of components. The tool computes it over all files in the
// directory, including .git and bin. SHA256SUMS has the hashes of the released files.
func withoutOwnHash(list []byte) ([]byte, error) {
	var bom map[string]any
	if err := json.Unmarshal(list, &bom); err != nil {
		return nil, err
	}
	components, ok := bom["components"].([]any)
	if !ok {
		return nil, errors.New("it lists no components")
	}
	for _, c := range components {
		if c, ok := c.(map[string]any); ok && c["name"] == "github.com/brine-salt/brine" {
			delete(c, "hashes")
		}
	}
	list, err := json.MarshalIndent(bom, "", "  ")
	return append(list, '\n'), err
}

// sign writes the checksums, and a signature file for every file.
func (r *release) sign(s *signer) error {
	list, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	names := make([]string, 0, len(list)+1)
	for _, e := range list {
		f, err := os.Open(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", h.Sum(nil), e.Name())
		names = append(names, e.Name())
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums.Bytes(), 0o644); err != nil {
		return err
	}
	for _, name := range slices.Concat(names, []string{"SHA256SUMS"}) {
		if err := s.signFile(filepath.Join(r.out, name), r.epoch); err != nil {
			return fmt.Errorf("cannot sign %s: %w", name, err)
		}
	}
	return nil
}
