// The cluster roles that a server starts with.

package main

import (
	"fmt"
	"log"
	"slices"
	"sort"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// roles has the roles for people and for everybody. The roles of a control plane's own parts are left out.
var roles = []string{
	"admin", "cluster-admin", "edit", "system:aggregate-to-admin", "system:aggregate-to-edit",
	"system:aggregate-to-view", "system:auth-delegator", "system:basic-user", "system:discovery", "system:monitoring",
	"system:public-info-viewer", "system:service-account-issuer-discovery", "view",
}

const labelPrefix = "rbac.authorization.k8s.io/"

// spaced is a list as a text of words; the group "" is called "core".
func spaced(list []string) string {
	named := slices.Clone(list)
	for i, item := range named {
		if item == "" {
			named[i] = "core"
		}
	}
	return strings.Join(named, " ")
}

func ruleLines(rule rbac.PolicyRule) []string {
	if len(rule.ResourceNames) > 0 {
		log.Fatal("a rule with names of objects")
	}
	lines := []string{fmt.Sprintf("    { verbs = %q,", strings.Join(rule.Verbs, " "))}
	key, text := "urls", spaced(rule.NonResourceURLs)
	if len(rule.NonResourceURLs) == 0 {
		lines = add(lines, "      ", fmt.Sprintf("groups = %q", spaced(rule.APIGroups)))
		key, text = "resources", spaced(rule.Resources)
	}
	if item := fmt.Sprintf("%s = %q", key, text); len(lines[len(lines)-1])+len(item)+5 <= width {
		lines[len(lines)-1] += " " + item + " },"
		return lines
	}
	lines = append(lines, textLines("      "+key+" = ", text, "      ")...)
	return append(lines, "    },")
}

// key quotes a name where Lua needs it.
func key(name string) string {
	if strings.ContainsAny(name, ":-") {
		return fmt.Sprintf("[%q]", name)
	}
	return name
}

func roleLines(role rbac.ClusterRole) []string {
	lines := []string{"  " + key(role.Name) + " = {"}
	for label := range role.Labels {
		if into, ok := strings.CutPrefix(label, labelPrefix); ok {
			lines = append(lines, fmt.Sprintf("    into = %q,", into))
		}
	}
	if role.AggregationRule != nil {
		for label := range role.AggregationRule.ClusterRoleSelectors[0].MatchLabels {
			lines = append(lines, fmt.Sprintf("    from = %q,", strings.TrimPrefix(label, labelPrefix)))
		}
	}
	for _, rule := range role.Rules {
		lines = append(lines, ruleLines(rule)...)
	}
	return append(lines, "  },")
}

func bindingLine(binding rbac.ClusterRoleBinding) string {
	groups := []string{}
	for _, subject := range binding.Subjects {
		if subject.Kind != "Group" {
			log.Fatalf("a binding of %s to a %s", binding.Name, subject.Kind)
		}
		groups = append(groups, subject.Name)
	}
	return "  " + key(binding.Name) + " = " + luaList(groups) + ","
}

func writeRoles(target string) {
	lines := []string{"--- Written by tools/kinds; described, and read, in auth/bootstrap.lua.", "local M = {}", "", "",
		"M.roles = {"}
	all := bootstrappolicy.ClusterRoles()
	sort.Slice(all, func(a, b int) bool { return all[a].Name < all[b].Name })
	for _, role := range all {
		if slices.Contains(roles, role.Name) {
			lines = append(lines, roleLines(role)...)
		}
	}
	lines = append(lines, "}", "", "", "M.bindings = {")
	for _, binding := range bootstrappolicy.ClusterRoleBindings() {
		if slices.Contains(roles, binding.RoleRef.Name) {
			lines = append(lines, bindingLine(binding))
		}
	}
	write(target, "roles.lua", append(lines, "}", "", "", "return M"))
}
