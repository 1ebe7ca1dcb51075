// The roles that a server starts with.

package main

import (
	"fmt"
	"log"
	"maps"
	"slices"
	"sort"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// roles has the cluster roles for people and for everybody. The roles of a control plane's own parts are left out.
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

func ruleLines(rule rbac.PolicyRule, indent string) []string {
	lines := []string{fmt.Sprintf("%s{ verbs = %q,", indent, strings.Join(rule.Verbs, " "))}
	key, text := "urls", spaced(rule.NonResourceURLs)
	if len(rule.NonResourceURLs) == 0 {
		lines = add(lines, indent+"  ", fmt.Sprintf("groups = %q", spaced(rule.APIGroups)))
		key, text = "resources", spaced(rule.Resources)
	}
	if len(rule.ResourceNames) > 0 {
		lines = add(lines, indent+"  ", fmt.Sprintf("names = %q", strings.Join(rule.ResourceNames, " ")))
	}
	if item := fmt.Sprintf("%s = %q", key, text); len(lines[len(lines)-1])+len(item)+5 <= width {
		lines[len(lines)-1] += " " + item + " },"
		return lines
	}
	lines = append(lines, textLines(indent+"  "+key+" = ", text, indent+"  ")...)
	return append(lines, indent+"},")
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
		lines = append(lines, ruleLines(rule, "    ")...)
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

func namespaceRoleLines(role rbac.Role) []string {
	lines := []string{"      " + key(role.Name) + " = {"}
	for _, rule := range role.Rules {
		lines = append(lines, ruleLines(rule, "        ")...)
	}
	return append(lines, "      },")
}

// namespaceBindingLines says who has a role: users, and service accounts as NAMESPACE/NAME.
func namespaceBindingLines(binding rbac.RoleBinding) []string {
	users, accounts := []string{}, []string{}
	for _, subject := range binding.Subjects {
		switch subject.Kind {
		case rbac.UserKind:
			users = append(users, subject.Name)
		case rbac.ServiceAccountKind:
			accounts = append(accounts, subject.Namespace+"/"+subject.Name)
		default:
			log.Fatalf("a binding of %s to a %s", binding.Name, subject.Kind)
		}
	}
	lines := []string{"      " + key(binding.Name) + " = {"}
	for _, item := range []string{
		fmt.Sprintf("role = %q", binding.RoleRef.Name),
		fmt.Sprintf("users = %q", strings.Join(users, " ")),
		fmt.Sprintf("accounts = %q", strings.Join(accounts, " ")),
	} {
		lines = append(lines, "        "+item+",")
	}
	return append(lines, "      },")
}

func namespaceLines(namespace string) []string {
	lines := []string{"  " + key(namespace) + " = {", "    roles = {"}
	for _, role := range bootstrappolicy.NamespaceRoles()[namespace] {
		lines = append(lines, namespaceRoleLines(role)...)
	}
	lines = append(lines, "    },", "    bindings = {")
	for _, binding := range bootstrappolicy.NamespaceRoleBindings()[namespace] {
		lines = append(lines, namespaceBindingLines(binding)...)
	}
	return append(lines, "    },", "  },")
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
	lines = append(lines, "}", "", "", "M.namespaces = {")
	for _, namespace := range slices.Sorted(maps.Keys(bootstrappolicy.NamespaceRoles())) {
		lines = append(lines, namespaceLines(namespace)...)
	}
	write(target, "roles.lua", append(lines, "}", "", "", "return M"))
}
