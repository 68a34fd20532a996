# In accounts that use Lake Formation, a right must be granted there as well as in IAM.

locals {
  grants = {
    for pair in setproduct(keys(var.roles), var.databases) :
    "${pair[0]}:${pair[1]}" => { role = var.roles[pair[0]], database = pair[1] }
  }
}

resource "aws_lakeformation_permissions" "databases" {
  for_each = local.grants

  principal   = each.value.role
  permissions = ["ALL"]

  database {
    name = each.value.database
  }
}

resource "aws_lakeformation_permissions" "tables" {
  for_each = local.grants

  principal   = each.value.role
  permissions = ["ALL"]

  table {
    database_name = each.value.database
    wildcard      = true
  }
}

resource "aws_lakeformation_permissions" "catalog" {
  for_each = var.may_create_databases ? var.roles : {}

  principal        = each.value
  permissions      = ["CREATE_DATABASE"]
  catalog_resource = true
}
