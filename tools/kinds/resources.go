// The resources of a real server: their names, verbs, parts and printer columns, in the order of discovery.

package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
)

var (
	stable     = regexp.MustCompile(`^v\d+$`)
	usualVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)

// Packages of internal types whose names are not the beginning of the group's.
var internalPackages = map[string]string{"": "core", "events.k8s.io": "core"}

// columnReader takes the place of the printer: it is told the columns of each type.
type columnReader map[string]string // "core.Pod" → columns

// word is a column in the notation of tables/columns.lua.
func word(column meta.TableColumnDefinition) string {
	text, kind, format := strings.ReplaceAll(column.Name, " ", "_"), "", ""
	if column.Type != "string" {
		kind = column.Type
	}
	if column.Name == "Name" && column.Format == "" {
		format = "/-"
	} else if column.Name != "Name" && column.Format != "" {
		format = "/" + column.Format
	}
	if kind+format != "" {
		text += ":" + kind + format
	}
	if column.Priority > 0 {
		return "(" + text + ")"
	}
	return text
}

// TableHandler is called by printersinternal.AddHandlers with the columns of a type, or of a list of it.
func (r columnReader) TableHandler(columns []meta.TableColumnDefinition, printFunc any) error {
	t := reflect.TypeOf(printFunc).In(0).Elem()
	list := []string{}
	for _, column := range columns {
		list = append(list, word(column))
	}
	r[filepath.Base(t.PkgPath())+"."+t.Name()] = strings.Join(list, " ")
	return nil
}

func (r columnReader) of(group, kind string) string {
	name, ok := internalPackages[group]
	if !ok {
		name, _, _ = strings.Cut(group, ".")
	}
	return r[name+"."+kind]
}

func luaList(list []string) string {
	quoted := []string{}
	for _, item := range list {
		quoted = append(quoted, fmt.Sprintf("%q", item))
	}
	return "{ " + strings.Join(quoted, ", ") + " }"
}

// add appends `name = value` to a line, and begins another one where it would be too long.
func add(lines []string, indent, item string) []string {
	last := len(lines) - 1
	if len(lines[last])+len(item)+2 > width {
		return append(lines, indent+item+",")
	}
	lines[last] += " " + item + ","
	return lines
}

func partLine(part meta.APIResource, kind string) string {
	_, name, _ := strings.Cut(part.Name, "/")
	text := fmt.Sprintf("      { name = %q,", name)
	if part.Kind != kind {
		text += fmt.Sprintf(" kind = %q,", part.Kind)
	}
	if part.Group != "" {
		text += fmt.Sprintf(" group = %q, version = %q,", part.Group, part.Version)
	}
	return text + " verbs = " + luaList(part.Verbs) + " },"
}

// resourceLines is an entry of the list. `parts` are its subresources.
func resourceLines(version meta.GroupVersionForDiscovery, group string, resource meta.APIResource,
	parts []meta.APIResource, columns string) []string {
	const indent = "    "
	lines := []string{fmt.Sprintf("  { group = %q, version = %q, plural = %q,", group, version.Version, resource.Name)}
	lines = add(lines, indent, fmt.Sprintf("kind = %q", resource.Kind))
	lines = add(lines, indent, fmt.Sprintf("namespaced = %t", resource.Namespaced))
	if resource.SingularName != strings.ToLower(resource.Kind) {
		lines = add(lines, indent, fmt.Sprintf("singular = %q", resource.SingularName))
	}
	if len(resource.ShortNames) > 0 {
		lines = add(lines, indent, "short = "+luaList(resource.ShortNames))
	}
	if len(resource.Categories) > 0 {
		lines = add(lines, indent, "categories = "+luaList(resource.Categories))
	}
	if !slices.Equal(resource.Verbs, usualVerbs) {
		lines = add(lines, indent, "verbs = "+luaList(resource.Verbs))
	}
	if columns != "" {
		lines = append(lines, textLines(indent+"columns = ", columns, indent)...)
	}
	if len(parts) > 0 {
		lines = append(lines, indent+"parts = {")
		for _, part := range parts {
			lines = append(lines, partLine(part, resource.Kind))
		}
		lines = append(lines, indent+"},")
	}
	return append(lines, "  },")
}

// textLines is a long text of words, followed by a comma, in as many lines as it needs.
func textLines(head, text, indent string) []string {
	lines, line := []string{}, head+`"`
	for i, word := range strings.Fields(text) {
		if len(line)+len(word)+3 > width {
			lines = append(lines, line+`"`)
			line = indent + `  .. "`
		}
		if i > 0 {
			word = " " + word
		}
		line += word
	}
	return append(lines, line+`",`)
}

func versionLines(source, path string, version meta.GroupVersionForDiscovery, group string, columns columnReader) []string {
	var list meta.APIResourceList
	readJSON(filepath.Join(source, "api/discovery", path), &list)
	lines := []string{}
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") {
			continue
		}
		parts := []meta.APIResource{}
		for _, other := range list.APIResources {
			if strings.HasPrefix(other.Name, resource.Name+"/") {
				parts = append(parts, other)
			}
		}
		lines = append(lines, resourceLines(version, group, resource, parts, columns.of(group, resource.Kind))...)
	}
	return lines
}

func writeResources(source, target string) {
	columns := columnReader{}
	printersinternal.AddHandlers(columns)
	lines := []string{
		"--- Written by tools/kinds: the resources of a real server, in the order in which discovery lists their groups;",
		"--- read by resources/init.lua, which has the defaults. The notation of columns is described in tables/columns.lua.",
		"return {",
	}
	core := meta.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}
	lines = append(lines, versionLines(source, "api__v1.json", core, "", columns)...)
	var groups meta.APIGroupList
	readJSON(filepath.Join(source, "api/discovery/apis.json"), &groups)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if stable.MatchString(version.Version) {
				path := fmt.Sprintf("apis__%s__%s.json", group.Name, version.Version)
				lines = append(lines, versionLines(source, path, version, group.Name, columns)...)
			}
		}
	}
	write(target, "resources.lua", append(lines, "}"))
}
