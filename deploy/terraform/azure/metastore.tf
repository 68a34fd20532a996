# A Hive metastore: a database, which Spark on the cluster can use by itself, and a thrift service over it, which eventlake
# and all others use.

locals {
  is_private = var.metastore_subnet_id != null
  is_5_7     = var.mysql_version == "5.7"

  # MySQL 8 knows lower_case_table_names only when a server is made, and Azure makes it with 1: names in small letters, found
  # however they are written. MySQL 5.7 gets 2, as Segment's guide has it.
  mysql = merge(
    {
      require_secure_transport = "ON"
      tls_version              = "TLSv1.2"
    },
    # Columns that nobody asked for would not be those that Hive knows.
    local.is_5_7 ? { lower_case_table_names = "2" } : { sql_generate_invisible_primary_key = "OFF" },
  )
}

resource "random_password" "metastore" {
  count = var.create_metastore ? 1 : 0

  length           = 32
  min_lower        = 1
  min_upper        = 1
  min_numeric      = 1
  min_special      = 1
  override_special = "-_"
}

resource "azurerm_mysql_flexible_server" "metastore" {
  # checkov:skip=CKV_AZURE_53:metastore_subnet_id closes it; without a network of one's own, clusters come from outside
  # checkov:skip=CKV2_AZURE_56:the same
  count = var.create_metastore ? 1 : 0

  name                = local.unique
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  version                = var.mysql_version
  sku_name               = var.mysql_sku
  administrator_login    = var.metastore_user
  administrator_password = random_password.metastore[0].result

  backup_retention_days        = 14
  geo_redundant_backup_enabled = var.mysql_geo_redundant_backup

  delegated_subnet_id   = var.metastore_subnet_id
  private_dns_zone_id   = var.metastore_private_dns_zone_id
  public_network_access = local.is_private ? "Disabled" : "Enabled"

  storage {
    auto_grow_enabled = true
    size_gb           = 20
  }

  lifecycle {
    # Azure chooses it.
    ignore_changes = [zone]

    precondition {
      condition     = !local.is_private || var.metastore_private_dns_zone_id != null
      error_message = "A server in a subnet needs a private DNS zone: set metastore_private_dns_zone_id."
    }
  }
}

resource "azurerm_mysql_flexible_server_configuration" "metastore" {
  for_each = var.create_metastore ? local.mysql : {}

  name                = each.key
  resource_group_name = local.group
  server_name         = azurerm_mysql_flexible_server.metastore[0].name
  value               = each.value
}

resource "azurerm_mysql_flexible_database" "metastore" {
  count = var.create_metastore ? 1 : 0

  name                = var.metastore_database
  resource_group_name = local.group
  server_name         = azurerm_mysql_flexible_server.metastore[0].name
  charset             = local.is_5_7 ? "utf8" : "utf8mb3"
  collation           = local.is_5_7 ? "utf8_unicode_ci" : "utf8mb3_unicode_ci"
}

locals {
  # Azure's way to say that everything within Azure may come: clusters have no address of their own.
  within_azure = { azure = { start = "0.0.0.0", end = "0.0.0.0" } }
  firewall     = merge(var.mysql_allow_azure ? local.within_azure : {}, var.mysql_firewall_rules)
}

resource "azurerm_mysql_flexible_server_firewall_rule" "metastore" {
  for_each = var.create_metastore && !local.is_private ? local.firewall : {}

  name                = each.key
  resource_group_name = local.group
  server_name         = azurerm_mysql_flexible_server.metastore[0].name
  start_ip_address    = each.value.start
  end_ip_address      = each.value.end
}

locals {
  service = var.create_metastore ? var.metastore_service : null

  metastore_uri = local.service == null ? var.metastore_uri : "thrift://${azurerm_container_group.metastore[0].ip_address}:9083"

  # As the official images of Hive take them.
  service_options = {
    ConnectionDriverName = "com.mysql.cj.jdbc.Driver"
    ConnectionURL        = one([for server in azurerm_mysql_flexible_server.metastore : "jdbc:mysql://${server.fqdn}:3306/${var.metastore_database}?sslMode=REQUIRED"])
    ConnectionUserName   = var.metastore_user
    ConnectionPassword   = one(random_password.metastore[*].result)
  }
}

# Thrift asks nobody who he is, so it is never public: whoever is let into the subnet may change tables.
resource "azurerm_container_group" "metastore" {
  count = local.service == null ? 0 : 1

  name                = "${var.name}-metastore"
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  os_type         = "Linux"
  ip_address_type = "Private"
  subnet_ids      = [local.service.subnet_id]
  restart_policy  = "Always"

  container {
    name   = "metastore"
    image  = local.service.image
    cpu    = 1
    memory = 2

    ports {
      port     = 9083
      protocol = "TCP"
    }

    secure_environment_variables = {
      SERVICE_NAME        = "metastore"
      DB_DRIVER           = "mysql"
      SERVICE_OPTS        = join(" ", [for name, value in local.service_options : "-Djavax.jdo.option.${name}=${value}"])
      AZURE_TENANT_ID     = local.tenant
      AZURE_CLIENT_ID     = azuread_application.lake.client_id
      AZURE_CLIENT_SECRET = azuread_application_password.lake.value
    }
  }

  dynamic "identity" {
    for_each = local.service.registry[*]

    content {
      type         = "UserAssigned"
      identity_ids = [identity.value.identity_id]
    }
  }

  dynamic "image_registry_credential" {
    for_each = local.service.registry[*]

    content {
      server                    = image_registry_credential.value.server
      user_assigned_identity_id = image_registry_credential.value.identity_id
    }
  }

  depends_on = [
    azurerm_mysql_flexible_database.metastore,
    azurerm_mysql_flexible_server_configuration.metastore,
    azurerm_mysql_flexible_server_firewall_rule.metastore,
  ]
}
