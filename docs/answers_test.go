package docs

import (
	"os"
	"strings"
	"testing"
)

// TestPagesAnswer: what readers ask of a page is on it, on the page where they look for it.
func TestPagesAnswer(t *testing.T) {
	for page, parts := range map[string][]string{
		// the files that a move leaves behind, by name
		"migrate.md":        {"`job_journal`", "`return_spool`", "keys of a state's record", "[custom-code.md](custom-code.md)"},
		"migrate-master.md": {"`salt-api`", "Disable the service `salt-api`", "engines", "`file_tree`", "`salt-ssh`", "## Back to stock", "`jobs.sqlite*`"},
		"http-access.md":    {"static/salt-auth.txt"},
		"upgrade.md":        {"## Install over stock", "## Between brine's packages", "## Back to stock"},
		"operate.md":        {"## Back up", "`cachedir/jobs.sqlite`", "logrotate", "GET /readyz", "brine-minion doctor"},
		"custom-code.md":    {"file.recurse", "saltutil.refresh_modules", "module_dirs"},
		"build-your-own.md": {"standard.Options(", "go mod edit -replace"},
		"embedding.md":      {"protocol/events", "AwaitReady"},
		"security.md":       {"module_dirs"},
	} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(b), part) {
				t.Errorf("%s does not have %q", page, part)
			}
		}
	}
	for _, page := range []string{"quickstart.md", "install.md", "migrate.md", "migrate-master.md", "upgrade.md", "operate.md", "scale.md", "messages.md",
		"faq.md", "states.md", "modules.md", "by-example.md", "check.md", "custom-code.md", "../CHANGELOG.md", "../CONTRIBUTING.md"} {
		readme, err := os.ReadFile("../README.md")
		if err != nil {
			t.Fatal(err)
		}
		if name := strings.TrimPrefix(page, "../"); !strings.Contains(string(readme), name) {
			t.Errorf("README.md has no link to %s", name)
		}
	}
}
