//go:build packages

package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// foreign maps the architectures whose packages run here under an emulator to the values of their grain cpuarch.
var foreign = []struct{ arch, debian, goarch, emulator, cpuarch string }{
	{"arm64", "arm64", "arm64", "qemu-aarch64-static", "aarch64"},
	{"armv7", "armhf", "arm", "qemu-arm-static", "armv7l"},
	{"riscv64", "riscv64", "riscv64", "qemu-riscv64-static", "riscv64"},
}

// TestEmulatedMinion runs the minion of the other architectures' packages: alone with states, and under a master.
func TestEmulatedMinion(t *testing.T) {
	for _, f := range foreign {
		t.Run(f.arch, func(t *testing.T) {
			tools(t, f.emulator)
			root := t.TempDir()
			output(t, "dpkg-deb", "-x", built(t, "out/brine-minion_"+first+"-1_"+f.debian+".deb"), root)
			program := []string{f.emulator, "-0", "salt-call", root + "/usr/bin/brine-minion"}
			m := startMaster(t)
			conf := filepath.Join(t.TempDir(), "c")
			write(t, conf+"/minion", 0o644, fmt.Sprintf("id: %[2]s\nroot_dir: %[1]s\npki_dir: %[1]s/pki\ncachedir: %[1]s/cache\nsock_dir: %[1]s/run\nlog_file: %[1]s/log\npidfile: %[1]s/pid\n"+
				"user: root\nfile_roots: {base: [%[1]s/srv]}\npillar_roots: {base: [%[1]s/pillar]}\nenable_fqdns_grains: false\nenable_gpu_grains: false\n%[3]s",
				conf, f.arch, m.minionConf()))
			write(t, conf+"/srv/site.sls", 0o644, "{% set n = 3 %}\nwritten:\n  file.managed:\n    - name: "+conf+"/written\n    - contents: '{{ pillar.word }} {{ n * 7 }} {{ grains.cpuarch }}'\n"+
				"asked:\n  cmd.run:\n    - name: echo asked\n    - onchanges: [file: written]\n")
			write(t, conf+"/pillar/top.sls", 0o644, "base: {'*': [words]}\n")
			write(t, conf+"/pillar/words.sls", 0o644, "word: grüße\n")
			local := func(args ...string) any {
				t.Helper()
				out := emulated(t, append(append(program[:len(program):len(program)], "-c", conf, "--local", "--out=json", "-l", "quiet"), args...)...)
				var ret map[string]any
				if err := json.Unmarshal([]byte(out), &ret); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return ret["local"]
			}
			if v := local("grains.get", "cpuarch"); v != f.cpuarch {
				t.Errorf("cpuarch = %v", v)
			}
			if v := local("test.versions_information"); !strings.Contains(fmt.Sprint(v), "v"+first) {
				t.Errorf("versions: %v", v)
			}
			states, ok := local("state.apply", "site").(map[string]any)
			if !ok || len(states) != 2 {
				t.Fatalf("state.apply: %v", states)
			}
			for id, s := range states {
				if s := s.(map[string]any); s["result"] != true || len(s["changes"].(map[string]any)) == 0 {
					t.Errorf("%s: %v", id, s)
				}
			}
			if b, err := os.ReadFile(conf + "/written"); err != nil || string(b) != "grüße 21 "+f.cpuarch+"\n" {
				t.Errorf("the state wrote %q %v", b, err)
			}
			// Under a master: it signs in with its own key, and runs a job and a state from the master's files.
			write(t, m.dir+"/srv/salt/far.sls", 0o644, "far:\n  test.succeed_with_changes: []\n")
			cmd := exec.Command(f.emulator, "-0", "salt-minion", root+"/usr/bin/brine-minion", "-c", conf, "-l", "warning")
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Signal(syscall.SIGTERM)
				if err := cmd.Wait(); err != nil {
					t.Errorf("the minion ended: %v\n%s", err, log.Bytes())
				}
			})
			m.awaitPing(t, f.arch)
			v, err := m.call(t, f.arch, "test.arg", "grüße", "[1, 2.5, null]", "k={a: true}")
			got, ok := v.(map[string]any)
			if !ok || err != nil {
				t.Fatalf("test.arg = %v %v", v, err)
			}
			kwargs, _ := got["kwargs"].(map[string]any)
			want := []any{[]any{"grüße", []any{1.0, 2.5, nil}}, map[string]any{"a": true}}
			if d := cmp.Diff(want, []any{got["args"], kwargs["k"]}); d != "" {
				t.Error(d)
			}
			if v, err := m.call(t, f.arch, "state.apply", "far"); err != nil || !strings.Contains(fmt.Sprint(v), "result:true") {
				t.Errorf("state.apply = %v %v", v, err)
			}
		})
	}
}

// emulated returns the standard output and standard error of a program that runs under QEMU. A child that QEMU forks
// can inherit a lock of another thread, and then never becomes the program that it should run. If it outlives its
// parent it only holds the output open. If its parent waits for it, the program is run again.
func emulated(t *testing.T, argv ...string) string {
	t.Helper()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		late := ctx.Err() != nil
		cancel()
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		switch {
		case err == nil || errors.Is(err, exec.ErrWaitDelay):
			return string(out)
		case !late:
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
		t.Logf("%s does not end and is run again; so far it wrote %q", strings.Join(argv, " "), out)
	}
	t.Fatalf("%s does not end", strings.Join(argv, " "))
	return ""
}

// TestEmulatedMaster runs the master of the other architectures' packages, with this host's minion.
func TestEmulatedMaster(t *testing.T) {
	for _, f := range foreign {
		t.Run(f.arch, func(t *testing.T) {
			tools(t, f.emulator)
			root := t.TempDir()
			output(t, "dpkg-deb", "-x", built(t, "out/brine-master_"+first+"-1_"+f.debian+".deb"), root)
			script := filepath.Join(root, "master.sh")
			write(t, script, 0o755, fmt.Sprintf("#!/bin/sh\nexec %s %s/usr/bin/brine-master \"$@\"\n", f.emulator, root))
			m := startMasterProgram(t, script)
			conf := filepath.Join(t.TempDir(), "c")
			write(t, conf+"/minion", 0o644, fmt.Sprintf("id: here\nroot_dir: %[1]s\npki_dir: %[1]s/pki\ncachedir: %[1]s/cache\nsock_dir: %[1]s/run\nlog_file: %[1]s/log\npidfile: %[1]s/pid\n"+
				"user: root\n%[2]s", conf, m.minionConf()))
			cmd := exec.Command(built(t, "linux-amd64/brine-minion"), "minion", "-c", conf, "-l", "warning")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
			m.awaitPing(t, "here")
			out, err := m.try(t, "key", "--out=json", "-L")
			if err != nil || !strings.Contains(out, `"here"`) {
				t.Errorf("salt-key: %s %v", out, err)
			}
		})
	}
}

// TestEmulatedCore runs, built for the other architectures, the tests of code that parses data from the network and
// from disks, and of keys and signatures: byte order, word size and alignment matter there. It skips tests that limit
// hostile input to half a second, because an emulator is slow.
func TestEmulatedCore(t *testing.T) {
	packages := []string{"./protocol/payload", "./protocol/crypt", "./internal/atomicfile", "./internal/signed", "./internal/python/yaml", "./minion/journal", "./minion/policy"}
	for _, f := range foreign {
		t.Run(f.arch, func(t *testing.T) {
			tools(t, f.emulator)
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-vet=off", "-short", "-p=1", "-skip=TestHostileDocuments", "-timeout=20m", "-exec", f.emulator}, packages...)...)
			cmd.Dir = "../../.."
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+f.goarch, "GOARM=7", "GOFLAGS=-trimpath")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s\n%s", f.arch, out)
		})
	}
}
