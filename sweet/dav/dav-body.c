/* SPDX-License-Identifier: MIT */
/*
 * dav-body.c - see dav-body.h.  No state: any thread.
 */
#include "dav/dav-body.h"
#include "dav/dav-xml.h"

static void free_property(void *data)
{
	struct dav_property *property = data;

	g_free(property->space);
	g_free(property->local);
	g_free(property->xml);
	g_free(property);
}

void dav_body_clear(struct dav_body *body)
{
	if (body->properties)
		g_ptr_array_unref(body->properties);
	g_free(body->owner);
	*body = (struct dav_body){.properties = NULL};
}

static void begin(struct dav_body *body)
{
	*body = (struct dav_body){.properties = g_ptr_array_new_with_free_func(free_property)};
}

/* Adds the children of an element prop; returns false if there are too many. */
static bool add_properties(struct dav_body *body, const struct dav_node *prop, bool set,
			   bool remove)
{
	for (unsigned i = 0; i < dav_node_children(prop); i++) {
		const struct dav_node *node = dav_node_at(prop, i);
		struct dav_property *property;
		GString *xml;

		if (!node->local)
			continue;
		if (body->properties->len == DAV_PROPERTIES_MAX)
			return false;
		property = g_new0(struct dav_property, 1);
		property->space = g_strdup(node->space);
		property->local = g_strdup(node->local);
		property->remove = remove;
		g_ptr_array_add(body->properties, property);
		if (!set)
			continue;
		xml = g_string_new(NULL);
		dav_xml_write(xml, node);
		property->xml = g_string_free(xml, FALSE);
	}
	return true;
}

static int take_find(const struct dav_node *root, struct dav_body *body)
{
	const struct dav_node *prop = dav_node_child(root, "prop");
	const struct dav_node *include = dav_node_child(root, "include");
	bool all = dav_node_child(root, "allprop"), names = dav_node_child(root, "propname");

	if (!dav_node_is(root, "propfind") || all + names + !!prop != 1)
		return 422;
	body->find = all ? DAV_FIND_ALL : names ? DAV_FIND_NAMES : DAV_FIND_SOME;
	if (prop && !add_properties(body, prop, false, false))
		return 400;
	if (all && include && !add_properties(body, include, false, false))
		return 400;
	return 0;
}

static int take_patch(const struct dav_node *root, struct dav_body *body)
{
	if (!dav_node_is(root, "propertyupdate"))
		return 422;
	for (unsigned i = 0; i < dav_node_children(root); i++) {
		const struct dav_node *node = dav_node_at(root, i), *prop;
		bool set = dav_node_is(node, "set"), remove = dav_node_is(node, "remove");

		if (!set && !remove)
			continue;
		prop = dav_node_child(node, "prop");
		if (!prop)
			return 422;
		if (!add_properties(body, prop, set, remove))
			return 400;
	}
	return body->properties->len ? 0 : 422;
}

static int take_lock(const struct dav_node *root, struct dav_body *body)
{
	const struct dav_node *scope = dav_node_child(root, "lockscope");
	const struct dav_node *type = dav_node_child(root, "locktype");
	const struct dav_node *owner = dav_node_child(root, "owner");
	bool exclusive = scope && dav_node_child(scope, "exclusive");
	GString *xml;

	body->shared = scope && dav_node_child(scope, "shared");
	if (!dav_node_is(root, "lockinfo") || exclusive == body->shared || !type ||
	    !dav_node_child(type, "write"))
		return 422;
	if (!owner)
		return 0;
	xml = g_string_new(NULL);
	dav_xml_write(xml, owner);
	body->owner = g_string_free(xml, FALSE);
	return 0;
}

static int read_body(const char *data, size_t length, struct dav_body *body,
		     int (*take)(const struct dav_node *root, struct dav_body *body))
{
	struct dav_node *root = dav_xml_read(data, length);
	int status;

	begin(body);
	status = root ? take(root, body) : 400;
	dav_xml_free(root);
	if (status)
		dav_body_clear(body);
	return status;
}

int dav_body_propfind(const char *data, size_t length, struct dav_body *body)
{
	return read_body(data, length, body, take_find);
}

int dav_body_proppatch(const char *data, size_t length, struct dav_body *body)
{
	return read_body(data, length, body, take_patch);
}

int dav_body_lock(const char *data, size_t length, struct dav_body *body)
{
	return read_body(data, length, body, take_lock);
}
