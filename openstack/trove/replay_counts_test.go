package trove

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notReplayed are the methods without a call beside Trove's own manager of any datastore, with the test that has their values.
var notReplayed = map[string]string{
	"attach_replication_slave":         "TestWithoutDatastore",
	"cleanup_source_on_replica_detach": "TestTroveReplication",
	"get_diagnostics":                  "TestWithoutDatastore",
	"get_hwinfo":                       "TestWithoutDatastore",
	"post_create_backup":               "TestTroveFreeze",
	"pre_create_backup":                "TestTroveFreeze",
	"ssl_action":                       "TestRefused",
	"ssl_rollback":                     "TestRefused",
	"ssl_show":                         "TestRefused",
	"update_guest":                     "TestWithoutDatastore",
}

// TestReplayCounts: every method is called beside Trove's own managers or has values in another test, and the documentation has the
// counts.
func TestReplayCounts(t *testing.T) {
	calls := map[string]map[string]int{}
	total, contained := map[string]int{}, map[string]int{}
	for _, s := range replayScenarios {
		for _, step := range s.steps {
			if !strings.HasPrefix(step.fun, "(") {
				if calls[step.fun] == nil {
					calls[step.fun] = map[string]int{}
				}
				calls[step.fun][s.datastore]++
				total[s.datastore]++
				if s.container {
					contained[s.datastore]++
				}
			}
		}
	}
	texts := ""
	files, err := filepath.Glob("*_test.go")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts += string(b)
	}
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, m := range Methods() {
		maria, postgres := calls[m.Name][managerMaria], calls[m.Name][managerPostgres]
		name := "`" + m.Name + "`"
		test, elsewhere := notReplayed[m.Name]
		switch {
		case elsewhere == (maria+postgres > 0):
			t.Errorf("%s has %d calls beside MariaDB's manager and %d beside PostgreSQL's, and in notReplayed %q", m.Name, maria, postgres, test)
			continue
		case maria > 0 && postgres > 0:
			rows["both"] = append(rows["both"], fmt.Sprintf("%s %d+%d", name, maria, postgres))
		case maria > 0:
			rows[managerMaria] = append(rows[managerMaria], fmt.Sprintf("%s %d", name, maria))
		case postgres > 0:
			rows[managerPostgres] = append(rows[managerPostgres], fmt.Sprintf("%s %d", name, postgres))
		default:
			rows["none"] = append(rows["none"], name)
			_, body, _ := strings.Cut(texts, "\nfunc "+test+"(")
			if body, _, _ = strings.Cut(body, "\n}\n"); !strings.Contains(body, `"`+m.Name+`"`) {
				t.Errorf("%s does not call %s", test, m.Name)
			}
		}
		delete(calls, m.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Errorf("%s is replayed, and is no method", name)
	}
	want := ""
	for _, row := range [][2]string{{"both", "With Trove's managers of MariaDB and PostgreSQL"}, {managerMaria, "With Trove's manager of MariaDB alone"},
		{managerPostgres, "With Trove's manager of PostgreSQL alone"}, {"none", "With the values of a test, because no manager of Trove 18 has the method"}} {
		if len(rows[row[0]]) > 0 {
			want += wrap("- "+row[1]+": "+strings.Join(rows[row[0]], ", ")+".") + "\n"
		}
	}
	counts := fmt.Sprintf("These are %d calls for MariaDB and %d for PostgreSQL, of which %d and %d go to servers in containers.", total[managerMaria],
		total[managerPostgres], contained[managerMaria], contained[managerPostgres])
	t.Log(counts)
	want += "\n" + counts + " "
	const listed = "- With Trove's managers of"
	page, err := os.ReadFile("../../docs/openstack/trove.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		_, got, _ := strings.Cut(string(page), listed)
		got, _, _ = strings.Cut(got, "\n## ")
		t.Errorf("docs/openstack/trove.md has other counts (-page +cases): %s\nIt should be:\n%s",
			cmp.Diff(strings.Split(listed+got, "\n"), strings.Split(want, "\n")), want)
	}
}

// wrap breaks a list's item into lines of the documentation.
func wrap(text string) string {
	const width = 150
	out, line := "", ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			out, line = out+line+"\n", " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return out + line
}
