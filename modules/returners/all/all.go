// Package all brings the returners of the default build into a program that imports it: one file for each, with its build tag.
// Those that need a database driver are only in a build that asks for them: -tags returners.mysql, returners.postgres
// (which has pgjsonb too), returners.sqlite3. The same holds for returners.kafka, whose client is large.
package all
