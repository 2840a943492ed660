package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no proc":            {nil, 0},
		"version 2":          {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "33554432\n"}, 32 << 20},
		"version 2, none":    {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"the parent's":       {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4096\n", "sys/fs/cgroup/a/memory.max": "1024\n"}, 1024},
		"version 1":          {map[string]string{"proc/self/cgroup": "4:cpu,memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
		"version 1, none":    {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"a container":        {map[string]string{"proc/self/cgroup": "0::/host/only\n", "sys/fs/cgroup/memory.max": "5000\n"}, 5000},
		"out of the mount":   {map[string]string{"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/x/memory.max": "7\n", "x/memory.max": "1\n"}, 7},
		"not a group's file": {map[string]string{"proc/self/cgroup": "garbage\n1:x\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := memory(root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
