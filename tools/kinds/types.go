// The types of the kinds: a file for each package, and one that lists the packages.

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	openapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// schema is what is read of an OpenAPI schema.
type schema struct {
	Ref                  string            `json:"$ref"`
	AllOf                []schema          `json:"allOf"`
	OneOf                []schema          `json:"oneOf"`
	Type                 string            `json:"type"`
	Format               string            `json:"format"`
	Default              json.RawMessage   `json:"default"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	ListType             string            `json:"x-kubernetes-list-type"`
	ListMapKeys          []string          `json:"x-kubernetes-list-map-keys"`
	MapType              string            `json:"x-kubernetes-map-type"`
	PatchStrategy        string            `json:"x-kubernetes-patch-strategy"`
	PatchMergeKey        string            `json:"x-kubernetes-patch-merge-key"`
	Kinds                []struct {
		Group string `json:"group"`
	} `json:"x-kubernetes-group-version-kind"`
}

// Definitions that the notation has words for, with Go's names for them.
var words = map[string]struct{ word, goName string }{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   {"Quantity", "resource.Quantity"},
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"IntOrString", "intstr.IntOrString"},
	"io.k8s.apimachinery.pkg.runtime.RawExtension":    {"RawExtension", "runtime.RawExtension"},
}

// The published default of scalars that are no pointers and always written.
var zeros = map[string]string{"string": `""`, "integer": "0", "boolean": "false", "number": "0"}

var refPattern = regexp.MustCompile(`^#/components/schemas/`)

type typeWriter struct {
	definitions map[string]schema            // by full name
	enums       map[string][]string          // full name and field → the values allowed
	aliases     map[string]string            // full name of a package → alias
	pending     []reflect.Type               // types that are still to be written
	seen        map[string]bool              // full names of those that are written or pending
	texts       map[string]map[string]string // alias → name of the definition → text
}

// goField is a field as JSON has it: those of embedded types stand among the others.
type goField struct {
	reflect.StructField
	number   string // in protobuf; of an embedded type's field the path to it, "2.1"
	embedded string // the embedded type it belongs to
	written  bool   // even when it is empty
	omitZero bool
}

func readJSON(path string, value any) {
	bytes, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(bytes, value))
}

func readDefinitions(source string) map[string]schema {
	all := map[string]schema{}
	paths, err := filepath.Glob(filepath.Join(source, "api/openapi-spec/v3/*_openapi.json"))
	check(err)
	for _, path := range paths {
		var document struct {
			Components struct {
				Schemas map[string]schema `json:"schemas"`
			} `json:"components"`
		}
		readJSON(path, &document)
		for name, definition := range document.Components.Schemas {
			all[name] = definition
		}
	}
	return all
}

// readEnums reads the values allowed, which the published documents of the module leave out.
func readEnums() map[string][]string {
	enums := map[string][]string{}
	all := openapi.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	for name, definition := range all {
		for field, property := range definition.Schema.Properties {
			leaf := &property
			for leaf.Items != nil || leaf.AdditionalProperties != nil {
				if leaf.Items != nil {
					leaf = leaf.Items.Schema
				} else {
					leaf = leaf.AdditionalProperties.Schema
				}
			}
			for _, value := range leaf.Enum {
				enums[name+"."+field] = append(enums[name+"."+field], value.(string))
			}
		}
	}
	return enums
}

// packageName turns "k8s.io/api/core/v1" into "io.k8s.api.core.v1".
func packageName(t reflect.Type) string {
	return "io.k8s." + strings.ReplaceAll(strings.TrimPrefix(t.PkgPath(), "k8s.io/"), "/", ".")
}

// innermost is what a type is a pointer to, a list of or a map of.
func innermost(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

func protobufNumber(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// fieldsOf lists the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]goField {
	fields := map[string]goField{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		number := protobufNumber(field)
		if field.Anonymous && name == "" {
			for inner, found := range fieldsOf(field.Type) {
				if number == "" { // TypeMeta, which protobuf has in an envelope
					found.number = ""
				} else {
					found.number = number + "." + found.number
					found.embedded = field.Name
				}
				fields[inner] = found
			}
			continue
		}
		omitted := strings.Split(options, ",")
		fields[name] = goField{
			StructField: field, number: number, omitZero: slices.Contains(omitted, "omitzero"),
			written: !slices.Contains(omitted, "omitempty") && !slices.Contains(omitted, "omitzero"),
		}
	}
	return fields
}

func (s schema) referred() string {
	if s.Ref == "" && len(s.AllOf) > 0 {
		return refPattern.ReplaceAllString(s.AllOf[0].Ref, "")
	}
	return refPattern.ReplaceAllString(s.Ref, "")
}

// want has a type written, once.
func (w *typeWriter) want(t reflect.Type) {
	name := packageName(t) + "." + t.Name()
	if !w.seen[name] {
		w.seen[name] = true
		w.pending = append(w.pending, t)
	}
}

// nameOf is how a definition of `alias` calls another one.
func (w *typeWriter) nameOf(full string, t reflect.Type, alias string) string {
	if known, ok := words[full]; ok {
		return known.word
	}
	if name := packageName(t) + "." + t.Name(); name != full {
		log.Fatalf("%s is published as %s", name, full)
	}
	owner, ok := w.aliases[packageName(t)]
	if !ok {
		log.Fatalf("a package that is not listed: %s", full)
	}
	w.want(t)
	if owner == alias {
		return t.Name()
	}
	return owner + "." + t.Name()
}

func scalarWord(s schema) string {
	switch {
	case s.Type == "boolean":
		return "bool"
	case s.Type == "integer" || s.Type == "number":
		if s.Format != "" {
			return s.Format
		}
		return s.Type
	case s.Format == "byte":
		return "bytes"
	}
	if s.Type != "string" || s.Format != "" {
		log.Fatalf("an unknown kind of value: %s %s", s.Type, s.Format)
	}
	return "string"
}

// typeWord is the type as the notation has it. `t` is the innermost type in Go.
func (w *typeWriter) typeWord(s schema, t reflect.Type, alias string) string {
	if full := s.referred(); full != "" {
		return w.nameOf(full, t, alias)
	} else if s.Items != nil {
		return "[]" + w.typeWord(*s.Items, t, alias)
	} else if s.AdditionalProperties != nil {
		return "{}" + w.typeWord(*s.AdditionalProperties, t, alias)
	} else if s.Type == "object" {
		return "object"
	}
	return scalarWord(s)
}

// goName is what the type would be called in Go if no part of it had a name of its own.
func goName(s schema) string {
	if full := s.referred(); full != "" {
		if known, ok := words[full]; ok {
			return known.goName
		}
		parts := strings.Split(full, ".")
		return strings.Join(parts[len(parts)-2:], ".")
	}
	switch {
	case s.Items != nil:
		return "[]" + goName(*s.Items)
	case s.AdditionalProperties != nil:
		return "map[string]" + goName(*s.AdditionalProperties)
	case s.Format == "byte":
		return "[]uint8"
	case s.Type == "integer":
		if s.Format == "" {
			return "int"
		}
		return s.Format
	case s.Type == "boolean":
		return "bool"
	case s.Type == "number":
		return "float64"
	}
	return s.Type
}

// isStruct says whether a value of the definition that is no pointer has {} as its published default.
func (w *typeWriter) isStruct(full string) bool {
	_, hasWord := words[full]
	return !hasWord && w.definitions[full].Type == "object"
}

// defaultWord is the default where it is not the one that the type implies.
func (w *typeWriter) defaultWord(s schema, field goField) string {
	implied := ""
	if field.Type.Kind() != reflect.Pointer {
		if full := s.referred(); full != "" && w.isStruct(full) {
			implied = "{}"
		} else if full == "" && field.written && s.Format != "byte" {
			implied = zeros[s.Type]
		}
	}
	if string(s.Default) == implied {
		return ""
	} else if len(s.Default) == 0 {
		log.Fatalf("%s has no default, where its type implies %s", field.Name, implied)
	}
	return "=" + string(s.Default)
}

func patchWord(s schema) string {
	if s.PatchStrategy == "" {
		return ""
	} else if s.PatchMergeKey == "" {
		return "patch:" + s.PatchStrategy
	}
	return "patch:" + s.PatchStrategy + "(" + s.PatchMergeKey + ")"
}

func listWord(s schema) string {
	if s.ListType == "map" {
		return "map(" + strings.Join(s.ListMapKeys, ",") + ")"
	}
	return s.ListType
}

// mark tells whether a field has to be given and whether it is written when it is empty.
func mark(required, written bool) string {
	switch {
	case required && written:
		return "!"
	case required:
		return "-"
	case written:
		return "+"
	}
	return ""
}

// wrap breaks long lines before a word or after a choice; what goes on is indented.
func wrap(line string) string {
	lines := []string{}
	for len(line) > width {
		at := strings.LastIndex(line[:width], "|") + 1
		if at == 0 {
			at = strings.LastIndex(line[:width], " ")
		}
		lines = append(lines, line[:at])
		line = "  " + strings.TrimPrefix(line[at:], " ")
	}
	return strings.Join(append(lines, line), "\n")
}

func (w *typeWriter) fieldLine(name string, s schema, required bool, enum []string, field goField, alias string) string {
	kind := w.typeWord(s, innermost(field.Type), alias)
	parts := []string{name + mark(required, field.written), kind}
	goType := field.Type
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
		parts[1] = "*" + kind
	}
	parts = append(parts, w.defaultWord(s, field), listWord(s), s.MapType, patchWord(s))
	if enum != nil {
		parts = append(parts, "{"+strings.Join(enum, "|")+"}")
	}
	if goType.String() != goName(s) {
		parts = append(parts, "go:"+goType.String())
	}
	if field.embedded != "" {
		parts = append(parts, "in:"+field.embedded)
	}
	if field.omitZero {
		parts = append(parts, "omitzero")
	}
	if field.number != "" {
		parts = append(parts, "#"+field.number)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return wrap(strings.Join(parts, " "))
}

// definition is the text of a type.
func (w *typeWriter) definition(t reflect.Type, alias string) string {
	full := packageName(t) + "." + t.Name()
	s, ok := w.definitions[full]
	switch {
	case !ok:
		log.Fatalf("not published: %s", full)
	case s.Format == "date-time":
		return "@type date-time"
	case s.Properties == nil && s.Type == "object":
		return "@type object"
	case s.Properties == nil:
		return "@type any"
	}
	lines := []string{}
	if len(s.Kinds) == 1 {
		lines = append(lines, "@kind")
	} else if len(s.Kinds) > 1 {
		lines = append(lines, "@kinds")
	}
	if s.MapType != "" {
		lines = append(lines, "@"+s.MapType)
	}
	fields := fieldsOf(t)
	for _, name := range sortedKeys(s.Properties) {
		if len(s.Kinds) == 1 && (name == "apiVersion" || name == "kind") {
			continue
		}
		field, ok := fields[name]
		if !ok {
			log.Fatalf("%s has no field %s in Go", full, name)
		}
		required, enum := slices.Contains(s.Required, name), w.enums[full+"."+name]
		lines = append(lines, w.fieldLine(name, s.Properties[name], required, enum, field, alias))
	}
	return strings.Join(lines, "\n")
}

// checkList sees that the list of a kind looks as schema/builtin.lua makes it up.
func (w *typeWriter) checkList(t reflect.Type) {
	list, ok := w.definitions[packageName(t)+"."+t.Name()+"List"]
	if !ok || list.Properties["metadata"].AllOf == nil {
		return
	}
	names := strings.Join(sortedKeys(list.Properties), " ")
	if names != "apiVersion items kind metadata" || !slices.Equal(list.Required, []string{"items"}) ||
		list.Properties["items"].Items.referred() != packageName(t)+"."+t.Name() {
		log.Fatalf("an unusual list of %s", t.Name())
	}
}

func sortedKeys[V any](values map[string]V) []string {
	keys := []string{}
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func packageLines(texts map[string]string) []string {
	lines := []string{"--- Written by tools/kinds; the notation is described in schema/notation.lua.", "return {"}
	for _, name := range sortedKeys(texts) {
		text := texts[name]
		if strings.Contains(text, "\n") || len(name)+len(text) > width-len("   = [[]],") {
			lines = append(lines, fmt.Sprintf("\n  %s = [[\n%s\n]],", name, text))
		} else {
			lines = append(lines, fmt.Sprintf("\n  %s = [[%s]],", name, text))
		}
	}
	return append(lines, "\n}")
}

func writeTypes(source, target string) {
	w := typeWriter{definitions: readDefinitions(source), enums: readEnums(), aliases: map[string]string{},
		seen: map[string]bool{}, texts: map[string]map[string]string{}}
	packages := []string{"--- Written by tools/kinds: the packages of types, by their aliases. The version is v1 where none is given.",
		"return {"}
	for _, entry := range kinds {
		first := reflect.TypeOf(entry.types[0])
		name := packageName(first)
		w.aliases[name] = entry.alias
		w.texts[entry.alias] = map[string]string{}
		group := ""
		if published := w.definitions[name+"."+first.Name()].Kinds; len(published) == 1 {
			group = published[0].Group
		}
		version := ""
		if last := name[strings.LastIndex(name, ".")+1:]; last != "v1" {
			version = fmt.Sprintf(", version = %q", last)
		}
		packages = append(packages, fmt.Sprintf("  %s = { name = %q, group = %q%s },", entry.alias, name, group, version))
		for _, value := range entry.types {
			w.want(reflect.TypeOf(value))
		}
	}
	for len(w.pending) > 0 {
		t := w.pending[0]
		w.pending = w.pending[1:]
		alias := w.aliases[packageName(t)]
		w.texts[alias][t.Name()] = w.definition(t, alias)
		w.checkList(t)
	}
	for alias, texts := range w.texts {
		write(target, "types/"+alias+".lua", packageLines(texts))
	}
	write(target, "packages.lua", append(packages, "}"))
}
