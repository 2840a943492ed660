// Command packages builds brine's deb, rpm and apk packages with nfpm. nfpm runs as a tool, so that it is not a
// dependency of the module.
//
// The Makefile builds the programs, in one directory per architecture. This command generates the other contents of
// the packages: manual pages and completions from the programs' help, the licences of all linked modules, and the
// changelog. pkg/*/nfpm.yaml describes the packages; pkg/etc has their configuration files, which "make compat"
// writes.
//
//	packages -version 1.2.3 -programs bin/packages -out bin/packages/out
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/brine-salt/brine/internal/version"
)

// nfpm is the tool that writes the packages. Its version is set only here.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// An arch is an architecture, with nfpm's, Go's and the Makefile's names for it.
type arch struct{ name, goarch, dir string }

var arches = []arch{{"amd64", "amd64", "linux-amd64"}, {"arm64", "arm64", "linux-arm64"},
	{"arm7", "arm", "linux-armv7"}, {"riscv64", "riscv64", "linux-riscv64"}}

// chosenArches returns the architectures for a list of the Makefile's names.
func chosenArches(list string) ([]arch, error) {
	var chosen []arch
	for name := range strings.FieldsSeq(list) {
		i := slices.IndexFunc(arches, func(a arch) bool { return a.dir == "linux-"+name })
		if i < 0 {
			return nil, fmt.Errorf("cannot build packages for %s: it is unknown", name)
		}
		chosen = append(chosen, arches[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("cannot build packages: -arch is needed")
	}
	return chosen, nil
}

// A pack is a package, or one package per architecture.
type pack struct {
	name   string            // the directory below pkg with its own contents
	base   string            // the directory below pkg with its description
	common bool              // the same package for all architectures
	deb    bool              // only a deb, no rpm or apk
	vars   map[string]string // variables in the description
}

// packaged are the packages. Another package with a minion, for another service than Heat, needs another entry and a
// directory below pkg with its contents.yaml. The largest come first, so that no processor waits for them at the end.
var packaged = []pack{
	{name: "python", base: "python", deb: true},
	{name: "master", base: "master"},
	{name: "minion", base: "minion", vars: map[string]string{"NAME": "brine-minion",
		"PROGRAM": "brine-minion", "SUMMARY": "Salt minion as one program, without Python",
		"DETAILS": "", "CONFLICTS": ""}},
	{name: "heat-minion", base: "minion", vars: map[string]string{"NAME": "brine-heat-minion",
		"PROGRAM": "heat-minion", "SUMMARY": "Salt minion and guest agent of OpenStack Heat as one program",
		"DETAILS": "\n  .\n  It is also the guest agent of OpenStack Heat, in place of os-collect-config,\n" +
			"  os-refresh-config, heat-config and heat-cfntools.",
		"CONFLICTS": ", python3-os-collect-config, heat-cfntools"}},
	{name: "trove-minion", base: "minion", vars: map[string]string{"NAME": "brine-trove-minion",
		"PROGRAM": "trove-minion", "SUMMARY": "Salt minion and guest agent of OpenStack Trove as one program",
		"DETAILS":   "\n  .\n  It is also the guest agent of OpenStack Trove, in place of\n  trove-guestagent, with the modules that such a guest needs.",
		"CONFLICTS": ", trove-guestagent"}},
	{name: "update", base: "update"},
	{name: "doc", base: "doc", common: true},
}

var semver = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func main() {
	release := flag.String("version", "",
		"the version of the packages, such as 1.2.3 or 1.2.3-rc.1")
	programs := flag.String("programs", "",
		"the directory with the programs: linux-amd64/brine-minion and so on")
	out := flag.String("out", "", "the directory for the packages")
	formats := flag.String("formats", "deb,rpm,apk", "the formats of the packages")
	list := flag.String("arch", "amd64", "the architectures, such as \"amd64 armv7\"")
	flag.Parse()
	if err := run(strings.TrimPrefix(*release, "v"), *programs, *out, *list,
		strings.Split(*formats, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(release, programs, out, list string, formats []string) error {
	chosen, err := chosenArches(list)
	switch {
	case err != nil:
		return err
	case !semver.MatchString(release):
		return fmt.Errorf("cannot build packages of version %q: it must be like 1.2.3 or 1.2.3-rc.1", release)
	case programs == "" || out == "":
		return errors.New("cannot build packages: -programs and -out are needed")
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work := filepath.Join(programs, "files")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	host, err := hostPrograms(work, programs)
	if err != nil {
		return err
	}
	epoch, err := commitTime()
	if err != nil {
		return err
	}
	if err := generatePackages(work, host, release, epoch); err != nil {
		return err
	}
	tool, err := buildNFPM(work)
	if err != nil {
		return err
	}
	var tasks errgroup.Group
	tasks.SetLimit(runtime.GOMAXPROCS(0))
	for _, a := range chosen {
		for _, p := range packaged {
			if p.common && a != chosen[0] {
				continue
			}
			for _, format := range formats {
				if p.deb && format != "deb" {
					continue
				}
				vars := map[string]string{"PACKAGE": p.name, "ARCH": a.name, "VERSION": release,
					"SALT": version.Salt, "FILES": work, "PROGRAMS": filepath.Join(programs, a.dir),
					"EPOCH": fmt.Sprint(epoch), "LICENSE": "Apache-2.0"}
				maps.Copy(vars, p.vars)
				switch {
				case p.common && format == "apk":
					vars["ARCH"] = "noarch"
				case p.common:
					vars["ARCH"] = "all"
				}
				if format == "deb" {
					vars["LICENSE"] = "" // not a field of Debian's packages
				}
				tasks.Go(func() error { return writePackage(tool, p, out, format, vars) })
			}
		}
		if !slices.Contains(formats, "deb") || wheelPlatforms[a.name] == "" { // riscv64 has no wheel tag
			continue
		}
		tasks.Go(func() error {
			return writeWheel(out, filepath.Join(programs, a.dir, "brine-master"), work, a, release, epoch)
		})
	}
	return tasks.Wait()
}

// hostPrograms returns a directory with programs that run on this host, whose help is the source of manual pages and
// completions. It uses the packages' programs if they are for this platform.
func hostPrograms(work, programs string) (string, error) {
	dir := filepath.Join(programs, "linux-"+runtime.GOARCH)
	if _, err := os.Stat(dir + "/brine-update"); err == nil && runtime.GOOS == "linux" {
		return dir, nil
	}
	dir = filepath.Join(work, "host")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, runCommand(nil, "go", "build", "-o", dir+"/", "./cmd/brine-minion",
		"./cmd/brine-master", "./cmd/brine-update")
}

// buildNFPM builds the tool for this host.
func buildNFPM(work string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(work, "tool"))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "nfpm"), runCommand([]string{"GOBIN=" + dir}, "go", "install", nfpm)
}

// description returns the package's nfpm configuration: that of its base, with the package's own contents.
func (p pack) description(format string) (string, error) {
	text, err := os.ReadFile("pkg/" + p.base + "/nfpm.yaml")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("pkg/" + p.name + "/contents.yaml")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	text, err = append(text, own...), nil
	switch p.name {
	case "doc":
		text, err = appendFiles(text, "docs", ".md", "/usr/share/doc/brine-doc/docs", "type: doc, ")
	case "python":
		text, err = appendFiles(text, "openstack/python/brine_openstack", ".py",
			"/usr/lib/python3/dist-packages/brine_openstack", "")
	}
	if format != "rpm" {
		// nfpm leaves files with this type out of packages of other formats.
		text = bytes.ReplaceAll(text, []byte("type: doc, "), nil)
	}
	if format == "deb" {
		text = bytes.ReplaceAll(text, []byte("changelog: ${FILES}/changelog.yaml\n"), nil)
		text = fmt.Appendf(text, "  - {src: \"${FILES}/%s/changelog.gz\", dst: /usr/share/doc/%s/changelog.Debian.gz, file_info: {mode: 0644}}\n",
			p.name, p.debName())
	}
	return string(text), err
}

// appendFiles adds the files below a directory to a package's contents. nfpm does not expand patterns for
// documentation.
func appendFiles(text []byte, dir, suffix, dst, kind string) ([]byte, error) {
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, suffix) {
			text = fmt.Appendf(text, "  - {src: %q, dst: %q, %sfile_info: {mode: 0644}}\n", name,
				dst+strings.TrimPrefix(name, dir), kind)
		}
		return err
	})
	return text, err
}

// writePackage runs nfpm on the description of a package, after replacing its variables.
func writePackage(tool string, p pack, out, format string, vars map[string]string) error {
	description, err := p.description(format)
	if err != nil {
		return err
	}
	var unknown error
	text := os.Expand(description, func(name string) string {
		v, ok := vars[name]
		if !ok {
			unknown = fmt.Errorf("pkg/%s/nfpm.yaml: there is no variable %s", p.base, name)
		}
		return v
	})
	config := filepath.Join(vars["FILES"], vars["PACKAGE"]+"-"+vars["ARCH"]+"-"+format+".yaml")
	if err := errors.Join(unknown, os.WriteFile(config, []byte(text), 0o644)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(vars["FILES"], "package-")
	if err != nil {
		return err
	}
	err = runCommand([]string{"SOURCE_DATE_EPOCH=" + vars["EPOCH"]}, tool, "package", "--config",
		config, "--packager", format, "--target", dir+"/")
	if err != nil {
		return err
	}
	names, err := filepath.Glob(dir + "/*")
	if err != nil || len(names) != 1 {
		return fmt.Errorf("nfpm made %v, not one package: %w", names, err)
	}
	if compress := map[string]func(string) error{"deb": compressDeb, "apk": compressAPK}[format]; compress != nil {
		if err := compress(names[0]); err != nil {
			return fmt.Errorf("cannot compress %s: %w", names[0], err)
		}
	}
	return os.Rename(names[0], filepath.Join(out, filepath.Base(names[0])))
}

// runCommand runs a program with its output on standard error.
func runCommand(env []string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s: %w", strings.Join(argv, " "), err)
	}
	return nil
}

// writeText creates a file and its directory.
func writeText(text string, path ...string) error {
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// A program is a command line of brine-minion or brine-master.
type program struct {
	name string   // the name it is called by
	args []string // how to call it for its help
	also []string // related manual pages
}

// programs are the command lines by package.
var programs = map[string][]program{
	"minion": {
		{name: "salt-minion", args: []string{"brine-minion", "minion"},
			also: []string{"salt-call", "brine-minion-check"}},
		{name: "salt-call", args: []string{"brine-minion", "call"}, also: []string{"salt-minion"}},
		{name: "brine-minion-check", args: []string{"brine-minion", "check"},
			also: []string{"brine-minion", "salt-minion"}},
	},
	"master": {
		{name: "salt-master", args: []string{"brine-master", "master"},
			also: []string{"salt", "salt-key", "salt-run", "salt-cp"}},
		{name: "salt", args: []string{"brine-master", "salt"},
			also: []string{"salt-master", "salt-key"}},
		{name: "salt-key", args: []string{"brine-master", "key"}, also: []string{"salt-master"}},
		{name: "salt-run", args: []string{"brine-master", "run"}, also: []string{"salt-master"}},
		{name: "salt-cp", args: []string{"brine-master", "cp"}, also: []string{"salt"}},
	},
	"update": {
		{name: "brine-update", args: []string{"brine-update"}, also: []string{"salt-minion"}},
	},
}

// linked are the programs in packages by the package's name here: the module's directory, and the path in the module.
var linked = map[string]struct{ dir, path string }{
	"minion":       {".", "./cmd/brine-minion"},
	"heat-minion":  {"openstack", "./cmd/heat-minion"},
	"trove-minion": {"openstack", "./cmd/trove-minion"},
	"master":       {".", "./cmd/brine-master"},
	"update":       {".", "./cmd/brine-update"},
}

// generatePackages writes the contents of packages except the programs and the files in pkg/.
func generatePackages(work, host, release string, epoch int64) error {
	for _, side := range []string{"minion", "master", "update"} {
		for _, p := range programs[side] {
			h, err := programHelp(host, p)
			if err != nil {
				return err
			}
			page := h.man(p.name, release, epoch, p.also)
			for _, f := range []struct{ text, path string }{
				{page, "man/" + p.name + ".1"},
				{h.bash(p.name), "bash/" + p.name},
				{h.zsh(p.name), "zsh/_" + p.name},
				{h.fish(p.name), "fish/" + p.name + ".fish"},
			} {
				if p.name == "brine-minion-check" && !strings.HasPrefix(f.path, "man/") {
					continue // it is the first word of brine-minion, not a command
				}
				if err := writeText(f.text, work, side, f.path); err != nil {
					return err
				}
			}
		}
		if side != "update" { // brine-update is a single program
			if err := writeText(overviewPage(side, release, epoch), work, side, "man", "brine-"+side+
				".1"); err != nil {
				return err
			}
		}
		if err := compressAll(filepath.Join(work, side, "man", "*.1")); err != nil {
			return err
		}
	}
	for name, program := range linked {
		text, err := licenseNotices(program.dir, program.path)
		if err != nil {
			return err
		}
		if err := writeText(text, work, name, "NOTICES"); err != nil {
			return err
		}
		if err := compressAll(filepath.Join(work, name, "NOTICES")); err != nil {
			return err
		}
	}
	for _, name := range []string{"heat-minion", "trove-minion"} {
		page, err := os.ReadFile("pkg/" + name + "/" + name + ".1")
		if err != nil {
			return err
		}
		text := strings.NewReplacer("@DATE@", time.Unix(epoch, 0).UTC().Format("2006-01-02"),
			"@VERSION@", release, "@SALT@", version.Salt).Replace(string(page))
		if err := writeText(text, work, name, "man", name+".1"); err != nil {
			return err
		}
		if err := compressAll(filepath.Join(work, name, "man", "*.1")); err != nil {
			return err
		}
	}
	entryPoints, err := pythonEntryPoints()
	if err == nil {
		err = writeText(entryPoints, work, "python", "entry_points.txt")
	}
	if err != nil {
		return err
	}
	if err := writeText(pythonMetadata(release), work, "python", "METADATA"); err != nil {
		return err
	}
	if err := writeText(copyright, work, "copyright"); err != nil {
		return err
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	notes, err := changesOf(string(changes), release)
	if err != nil {
		return err
	}
	list, err := rpmChangelog(notes, release, epoch)
	if err != nil {
		return err
	}
	for _, p := range packaged {
		if err := writeText(debChangelog(notes, p.debName(), release, epoch), work, p.name, "changelog"); err != nil {
			return err
		}
		if err := compressAll(filepath.Join(work, p.name, "changelog")); err != nil {
			return err
		}
	}
	return writeText(list, work, "changelog.yaml")
}

// debName returns the name of the Debian package.
func (p pack) debName() string {
	switch {
	case p.vars["NAME"] != "":
		return p.vars["NAME"]
	case p.name == "python":
		return "python3-brine-openstack"
	}
	return "brine-" + p.name
}
