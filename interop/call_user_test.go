//go:build interop

package interop

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCallAsUser runs salt-call as root for another user, by the option user and by --priv. The job runs as that
// user, who also owns the directories that were created.
func TestCallAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can become another user")
	}
	for _, tt := range []struct {
		name, config string
		args         []string
	}{
		{"option", "user: nobody\n", nil},
		{"flag", "", []string{"--priv", "nobody"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tempDir(t)
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/etc/minion", "id: user\nfile_client: local\nroot_dir: "+dir+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_level_logfile: quiet\n"+
				"log_file: log\nenable_fqdns_grains: false\nenable_gpu_grains: false\n"+tt.config)
			args := append([]string{"-c", dir + "/etc", "--local", "--out=newline_values_only"}, tt.args...)
			cmd := exec.Command(ours("salt-call"), append(args, "cmd.run", "id -un; stat -c %U "+dir+"/cache "+dir+"/pki "+dir+"/run; echo $HOME", "cwd=/")...)
			cmd.Env = append(os.Environ(), "HOME=/root")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			home, err := exec.Command("getent", "passwd", "nobody").Output()
			if err != nil {
				t.Fatal(err)
			}
			want := "nobody\nnobody\nnobody\nnobody\n" + strings.Split(string(home), ":")[5] + "\n"
			if string(out) != want {
				t.Errorf("got %q want %q", out, want)
			}
		})
	}
}
