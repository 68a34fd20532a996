# In accounts that use Lake Formation, a right must be granted there as well as in IAM.

locals {
  lake_formation_roles = var.lake_formation ? merge(
    { job = aws_iam_role.job.arn },
    var.create_cluster ? { nodes = aws_iam_role.nodes[0].arn } : {},
  ) : {}
  lake_formation_grants = {
    for pair in setproduct(keys(local.lake_formation_roles), var.lake_formation ? local.databases : []) :
    "${pair[0]}:${pair[1]}" => { role = local.lake_formation_roles[pair[0]], database = pair[1] }
  }
}

resource "aws_glue_catalog_database" "lake" {
  for_each = var.lake_formation ? local.databases : []

  name         = each.value
  location_uri = "s3://${var.bucket}/${local.root}segment-data/"
  tags         = local.tags
}

resource "aws_lakeformation_permissions" "databases" {
  for_each = local.lake_formation_grants

  principal   = each.value.role
  permissions = ["ALL"]

  database {
    name = aws_glue_catalog_database.lake[each.value.database].name
  }
}

resource "aws_lakeformation_permissions" "tables" {
  for_each = local.lake_formation_grants

  principal   = each.value.role
  permissions = ["ALL"]

  table {
    database_name = aws_glue_catalog_database.lake[each.value.database].name
    wildcard      = true
  }
}

resource "aws_lakeformation_permissions" "catalog" {
  for_each = var.create_databases ? local.lake_formation_roles : {}

  principal        = each.value
  permissions      = ["CREATE_DATABASE"]
  catalog_resource = true
}
